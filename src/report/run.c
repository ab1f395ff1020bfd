/* A run, for people. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "report/members.h"
#include "report/requests.h"
#include "report/run_kernels.h"
#include "report/run_segments.h"

enum { SEGMENTS_SHOWN = 20 };

#define GREEN "\x1b[1;32m"
#define RED "\x1b[1;31m"
#define YELLOW "\x1b[1;33m"
#define PLAIN "\x1b[0m"

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---------------------------------------------------------------- the verdict */

enum { VERDICT_TEXT_SIZE = 160 };

/* "verified: 8 of 10 results (2 carry no expected tensor)"; returns text. */
static const char *verdict_text(const struct run_facts *facts, char text[VERDICT_TEXT_SIZE])
{
    const struct healcl_report *report = facts->report;
    const bool differs = report->verdict == HEALCL_DIFFERS;
    uint64_t total = report->results, bare = total - report->results_compared;
    char partial[64] = "";
    if (bare > 0)
        snprintf(partial, sizeof partial, " (%" PRIu64 " carr%s no expected tensor)", bare,
                 bare == 1 ? "ies" : "y");
    if (report->verdict != HEALCL_NOTHING_TO_VERIFY)
        snprintf(text, VERDICT_TEXT_SIZE, "%s: %" PRIu64 " of %" PRIu64 " result%s%s",
                 differs ? "different" : "verified",
                 differs ? report->results_different : report->results_compared, total,
                 plural(total), partial);
    else if (total == 0)
        snprintf(text, VERDICT_TEXT_SIZE, "nothing to verify: the transcript downloads no result");
    else
        snprintf(text, VERDICT_TEXT_SIZE, "nothing to verify: %" PRIu64 " result%s %s", total,
                 plural(total),
                 facts->no_verify ? "not compared (--no-verify)" : "without an expected tensor");
    return text;
}

static void print_verdict(const struct run_facts *facts, const struct style *style)
{
    char text[VERDICT_TEXT_SIZE];
    enum healcl_verdict verdict = facts->report->verdict;
    verdict_text(facts, text);
    if (!style->colour) {
        fprintf(style->stream, "%s\n", text);
        return;
    }
    const char *colour = verdict == HEALCL_VERIFIED  ? GREEN
                         : verdict == HEALCL_DIFFERS ? RED
                                                     : YELLOW;
    size_t word = strcspn(text, ":");
    fprintf(style->stream, "%s%.*s%s%s\n", colour, (int)word, text, PLAIN, text + word);
}

/* ---------------------------------------------------------------- segments */

const char *text_roofline(double allowed, double nanoseconds, char text[COLUMN_TEXT_SIZE])
{
    const double percent = 100 * allowed / nanoseconds;
    snprintf(text, COLUMN_TEXT_SIZE, "%.0f %%%s", share_shown(percent),
             percent > SHARE_MAX ? ", in cache" : "");
    return text;
}

/* Which share of a segment's time the roofline is. */
static const char *share_text(const struct segment_row *row, char text[COLUMN_TEXT_SIZE])
{
    if (row->roofline == 0 || row->of.nanoseconds == 0)
        return "-";
    return text_roofline((double)row->roofline, (double)row->of.nanoseconds, text);
}

#define ROW_IF(name, member, known, expression) \
    COLUMN_IF(name, struct segment_row, member, known, expression)
#define ROW_FIELD(member) COLUMN_FIELD(struct segment_row, of.member)

ROW_IF(told_name, text, true, segment_title(it->of.name))
ROW_IF(row_operations, number, !it->is_time, it->of.operations)
ROW_IF(roofline, number, it->has_roofline, it->roofline)
ROW_IF(share, text, true, share_text(it, value->room))

/* Where a column is told. */
enum { IN_BRIEF = COLUMN_PLACES, IN_FULL = IN_BRIEF << 1, IN_ALL = IN_BRIEF | IN_FULL };

static const struct column segment_rows[] = {
    {"name", NULL, COLUMN_TEXT, 0, ROW_FIELD(name)},
    {NULL, "segment", COLUMN_TEXT, IN_ALL | SHRINKS, .value = told_name},
    {"operations", "operations", COLUMN_COUNT, IN_ALL, .value = row_operations},
    {"bytes_up", "up", COLUMN_BYTES, IN_ALL | DASH_IF_0, ROW_FIELD(bytes_up)},
    {"bytes_down", "down", COLUMN_BYTES, IN_ALL | DASH_IF_0, ROW_FIELD(bytes_down)},
    {"time_ns", "time", COLUMN_TIME, IN_ALL, ROW_FIELD(nanoseconds)},
    {"roofline_ns", NULL, COLUMN_TIME, 0, .value = roofline},
    {NULL, "roofline", COLUMN_TEXT, IN_FULL | TO_THE_RIGHT, .value = share},
    {"profiled_ns", NULL, COLUMN_TIME, 0, ROW_FIELD(profiled_nanoseconds)},
    {"without_command_ns", NULL, COLUMN_TIME, 0, ROW_FIELD(without_command_nanoseconds)},
    {"not_begun_ns", NULL, COLUMN_TIME, 0, ROW_FIELD(not_begun_nanoseconds)},
};

const struct column_table report_segment_columns = COLUMN_TABLE(segment_rows);

struct segment_row report_segment_row(const struct run_facts *facts, size_t segment)
{
    return (struct segment_row){
        .of = facts->report->segments[segment],
        .roofline = roofline_time(&facts->roofline, &facts->plan->segments[segment].after),
        .has_roofline = facts->roofline.bytes > 0,
    };
}

/* A table of segments and of other times. */
struct segment_table {
    struct table *text;
    unsigned place;
};

static void add_row(const struct segment_table *table, const struct segment_row *row)
{
    columns_row(table->text, &report_segment_columns, table->place, NULL, row);
}

static void add_time(const struct segment_table *table, const char *name, uint64_t nanoseconds)
{
    if (nanoseconds > 0)
        add_row(table, &(struct segment_row){.of = {.name = name, .nanoseconds = nanoseconds},
                                             .is_time = true});
}

/* Building programs, and what the first run took longer than those that count, for drivers compile
 * kernels when they first run, too. */
static uint64_t compiling_time(const struct healcl_report *report)
{
    uint64_t shortest = UINT64_MAX;
    for (size_t i = 0; i < report->run_count; i++)
        if (report->run_nanoseconds[i] < shortest)
            shortest = report->run_nanoseconds[i];
    uint64_t first = report->warm_up_nanoseconds;
    return report->compile_nanoseconds + (first > shortest ? first - shortest : 0);
}

/* Where a cold start went, but for what is not 0: opening a device has tested it, programs were
 * built, and kernels ran for the first time. */
static void add_cold_start(const struct segment_table *table, const struct run_facts *facts)
{
    const struct healcl_report *report = facts->report;
    const uint64_t built = report->programs_built, loaded = report->programs_loaded;
    char programs[64], launches[48];
    snprintf(programs, sizeof programs, "  %" PRIu64 " program%s %s", built ? built : loaded,
             plural(built ? built : loaded), built ? "built" : "loaded");
    if (built > 0 && loaded > 0)
        snprintf(programs + strlen(programs), sizeof programs - strlen(programs),
                 ", %" PRIu64 " loaded", loaded);
    snprintf(launches, sizeof launches, "  %" PRIu64 " first launch%s", report->first_launches,
             report->first_launches == 1 ? "" : "es");
    add_time(table, programs, built + loaded > 0 ? report->compile_nanoseconds : 0);
    add_time(table, launches, report->first_launch_nanoseconds);
    add_time(table, "self-test", facts->self_test_nanoseconds);
}

static int slower_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The time that a segment must take to be among the slowest SEGMENTS_SHOWN. */
static enum healcl_status slowest(const struct healcl_report *report, uint64_t *least)
{
    *least = 0;
    if (report->segment_count <= SEGMENTS_SHOWN)
        return HEALCL_OK;
    uint64_t *times = malloc(report->segment_count * sizeof *times);
    if (!times)
        return HEALCL_NO_MEMORY;
    for (size_t i = 0; i < report->segment_count; i++)
        times[i] = report->segments[i].nanoseconds;
    qsort(times, report->segment_count, sizeof *times, slower_first);
    *least = times[SEGMENTS_SHOWN - 1];
    free(times);
    return HEALCL_OK;
}

static void add_to(struct healcl_segment_profile *sum, const struct healcl_segment_profile *segment)
{
    sum->operations += segment->operations;
    sum->bytes_up += segment->bytes_up;
    sum->bytes_down += segment->bytes_down;
    sum->nanoseconds += segment->nanoseconds;
}

static enum healcl_status print_segments(const struct run_facts *facts, const struct style *style,
                                         bool all)
{
    const struct healcl_report *report = facts->report;
    const unsigned place = all && facts->roofline.bytes > 0 ? IN_FULL : IN_BRIEF;
    uint64_t least = 0;
    if (!all)
        TRY(slowest(report, &least));
    const struct segment_table table = {columns_create(&report_segment_columns, place), place};
    struct segment_row total = {.of.name = "total"}, rest = {.of.name = ""};
    size_t shown = 0;
    for (size_t i = 0; i < report->segment_count; i++) {
        const struct segment_row row = report_segment_row(facts, i);
        const bool show = all || report->segment_count <= SEGMENTS_SHOWN ||
                          (row.of.nanoseconds >= least && shown < SEGMENTS_SHOWN);
        add_to(&total.of, &row.of);
        if (show)
            add_row(&table, &row);
        else
            add_to(&rest.of, &row.of);
        shown += show;
    }
    char name[48];
    snprintf(name, sizeof name, "(%zu faster ones)", report->segment_count - shown);
    rest.of.name = name;
    if (shown < report->segment_count)
        add_row(&table, &rest);
    if (report->segment_count != 1)
        add_row(&table, &total);
    add_time(&table, "compiling", compiling_time(report));
    if (all)
        add_cold_start(&table, facts);
    return table_print(table.text, style->stream, style->width);
}

/* ---------------------------------------------------------------- operations */

struct kind {
    const char *name;
    uint64_t count, nanoseconds;
    uint64_t fallbacks, fallback_nanoseconds;
    const char *fallback_reason;
};

static int longer_first(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    if (x->nanoseconds != y->nanoseconds)
        return x->nanoseconds < y->nanoseconds ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Adds up the segments' profiles. The caller frees what it returns; NULL when out of memory. */
static struct kind *sum_kinds(const struct healcl_report *report, size_t *count)
{
    size_t profiles = 1;
    for (size_t i = 0; i < report->segment_count; i++)
        profiles += report->segments[i].profile_count;
    struct kind *kinds = calloc(profiles, sizeof *kinds);
    *count = 0;
    for (size_t i = 0; kinds && i < report->segment_count; i++)
        for (size_t j = 0; j < report->segments[i].profile_count; j++) {
            const struct healcl_operation_profile *profile = &report->segments[i].profiles[j];
            size_t k = 0;
            while (k < *count && strcmp(kinds[k].name, profile->name) != 0)
                k++;
            *count += k == *count;
            kinds[k].name = profile->name;
            kinds[k].count += profile->count;
            kinds[k].nanoseconds += profile->nanoseconds;
            kinds[k].fallbacks += profile->fallbacks;
            kinds[k].fallback_nanoseconds += profile->fallback_nanoseconds;
            if (!kinds[k].fallback_reason)
                kinds[k].fallback_reason = profile->fallback_reason;
        }
    if (kinds)
        qsort(kinds, *count, sizeof *kinds, longer_first);
    return kinds;
}

/* The time of the runs that took the times of operations: theirs, and what lies between. */
struct time_shares {
    uint64_t total, not_begun, without_command, rest;
};

static struct time_shares sum_shares(const struct healcl_report *report, const struct kind *kinds,
                                     size_t kind_count)
{
    struct time_shares shares = {0};
    for (size_t i = 0; i < report->segment_count; i++) {
        shares.total += report->segments[i].profiled_nanoseconds;
        shares.not_begun += report->segments[i].not_begun_nanoseconds;
        shares.without_command += report->segments[i].without_command_nanoseconds;
    }
    uint64_t known = shares.not_begun + shares.without_command;
    for (size_t i = 0; i < kind_count; i++)
        known += kinds[i].nanoseconds;
    /* Each is a median of its own: their sum may be above that of the whole. */
    if (shares.total < known)
        shares.total = known;
    shares.rest = shares.total - known;
    return shares;
}

/* The context is the time that shares are of. */
static bool kind_share(const void *context, const void *record, struct column_value *value)
{
    const struct time_shares *shares = context;
    const struct kind *kind = record;
    snprintf(value->room, sizeof value->room, "%.1f %%",
             100.0 * (double)kind->nanoseconds / (double)shares->total);
    value->text = value->room;
    return kind->nanoseconds > 0;
}

COLUMN_IF(kind_each, struct kind, number, it->count > 0 && it->nanoseconds > 0,
          it->nanoseconds / it->count)

#define KIND_FIELD(member) COLUMN_FIELD(struct kind, member)

static const struct column kind_rows[] = {
    {NULL, "operation", COLUMN_TEXT, IN_TEXT | SHRINKS, KIND_FIELD(name)},
    {NULL, "count", COLUMN_COUNT, IN_TEXT | DASH_IF_0, KIND_FIELD(count)},
    {NULL, "time", COLUMN_TIME, IN_TEXT | DASH_IF_0, KIND_FIELD(nanoseconds)},
    {NULL, "share", COLUMN_TEXT, IN_TEXT | TO_THE_RIGHT, .value = kind_share},
    {NULL, "each", COLUMN_TIME, IN_TEXT, .value = kind_each},
};

static const struct column_table kind_columns = COLUMN_TABLE(kind_rows);

static enum healcl_status print_operations(const struct healcl_report *report,
                                           const struct style *style)
{
    size_t count;
    struct kind *kinds = sum_kinds(report, &count);
    if (!kinds)
        return HEALCL_NO_MEMORY;
    const struct time_shares shares = sum_shares(report, kinds, count);
    const struct kind others[] = {
        {.name = "(the driver begins a kernel)", .nanoseconds = shares.not_begun},
        {.name = "(the device has no command)", .nanoseconds = shares.without_command},
        {.name = "(transfers and the rest)", .nanoseconds = shares.rest},
    };
    struct table *table = columns_create(&kind_columns, IN_TEXT);
    for (size_t i = 0; i < count; i++)
        columns_row(table, &kind_columns, IN_TEXT, &shares, &kinds[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].nanoseconds > 0)
            columns_row(table, &kind_columns, IN_TEXT, &shares, &others[i]);
    free(kinds);
    return table_print(table, style->stream, style->width);
}

/* Which kernels of manifests ran. */
static void print_manifest_kernels(const struct healcl_report *report, const struct style *style)
{
    for (size_t i = 0; i < report->manifest_kernel_count; i++) {
        const struct healcl_manifest_kernel *kernel = &report->manifest_kernels[i];
        report_label(style, "manifest", "%s of %s ran %" PRIu64 " step%s of %s%s%s", kernel->name,
                     kernel->manifest, kernel->steps, kernel->steps == 1 ? "" : "s", kernel->what,
                     kernel->replaces ? " in the place of a built-in kernel" : "",
                     kernel->tuned ? ", tuned" : "");
    }
}

/* What the host has done for the device, and what other kernels have for those of manifests. */
static enum healcl_status print_fallbacks(const struct healcl_report *report,
                                          const struct style *style)
{
    size_t count;
    if (report->fallbacks == 0)
        return HEALCL_OK;
    struct kind *kinds = sum_kinds(report, &count);
    if (!kinds)
        return HEALCL_NO_MEMORY;
    putc('\n', style->stream);
    for (size_t i = 0; i < count; i++)
        if (kinds[i].fallbacks > 0)
            report_label(style, kinds[i].fallback_nanoseconds ? "on the host" : "fell back",
                         "%s: %" PRIu64 " step%s, %s: %s", kinds[i].name, kinds[i].fallbacks,
                         kinds[i].fallbacks == 1 ? "" : "s",
                         kinds[i].fallback_nanoseconds ? TEXT_TIME(kinds[i].fallback_nanoseconds)
                                                       : "to other kernels than a manifest's",
                         kinds[i].fallback_reason);
    free(kinds);
    return HEALCL_OK;
}

static void print_clock(const struct run_facts *facts, const struct style *style)
{
    if (facts->device && facts->report->operations_by_host)
        fprintf(style->stream,
                "(by the host's clock, each command waited for: this driver takes no "
                "times)\n");
}

/* ---------------------------------------------------------------- the whole */

static enum healcl_status print_runs(const struct healcl_report *report, const struct style *style)
{
    if (report->run_count < 2)
        return HEALCL_OK;
    uint64_t *times = malloc(report->run_count * sizeof *times);
    if (!times)
        return HEALCL_NO_MEMORY;
    memcpy(times, report->run_nanoseconds, report->run_count * sizeof *times);
    const uint64_t median = sort_to_median(times, report->run_count);
    report_label(style, "runs", "%zu: median %s, fastest %s, slowest %s", report->run_count,
                 TEXT_TIME(median), TEXT_TIME(times[0]), TEXT_TIME(times[report->run_count - 1]));
    free(times);
    return HEALCL_OK;
}

/* Of a device that is not run as its kind is by default: figures of one are not those of another.
 */
static void print_tuning(const struct device_tuning *tuning, const struct style *style,
                         bool verbose)
{
    char text[TUNING_TEXT_SIZE];
    tuning_format(tuning, text);
    report_label(style, "tuned", "by %s%s%s", tuning_source_name(tuning), verbose ? ": " : "",
                 verbose ? text : "");
}

/* What it took to stay below the limit of device memory. */
static void print_price(const struct healcl_report *report, const struct style *style)
{
    report_label(style, "limit", "%s: %s spilled, %s brought back, %s uploaded again, in %s",
                 TEXT_BYTES(report->device_memory_limit), TEXT_BYTES(report->bytes_spilled),
                 TEXT_BYTES(report->bytes_brought_back), TEXT_BYTES(report->bytes_streamed_again),
                 TEXT_TIME(report->spill_nanoseconds));
}

enum healcl_status report_run(const struct run_facts *facts, const struct style *style,
                              bool verbose)
{
    const struct healcl_report *report = facts->report;
    report_label(style, "transcript", "%s", facts->file);
    if (facts->device)
        report_label(style, "device", "%s (%s)", facts->device->name, facts->device->platform);
    else
        report_label(style, "device", "host reference");
    if (verbose && facts->device)
        report_label(style, "driver", "%s, %s", facts->device->driver, facts->device->version);
    if (facts->tuning && tuning_source_name(facts->tuning))
        print_tuning(facts->tuning, style, verbose);
    if (facts->device && report->device_memory_limit == 0)
        report_label(style, "memory", "%s at most, %s of it for tensors",
                     TEXT_BYTES(report->device_bytes_peak),
                     TEXT_BYTES(report->tensor_bytes_allocated));
    else
        report_label(style, "memory", "%s at most", TEXT_BYTES(report->device_bytes_peak));
    if (report->device_memory_limit > 0)
        print_price(report, style);
    print_manifest_kernels(report, style);
    TRY(print_runs(report, style));
    if (facts->steady)
        report_steady(facts->steady, style);
    if (report->segment_count > 0) {
        putc('\n', style->stream);
        TRY(print_segments(facts, style, verbose));
    }
    if (verbose && report->segment_count > 0) {
        putc('\n', style->stream);
        TRY(print_operations(report, style));
        print_clock(facts, style);
    }
    TRY(print_fallbacks(report, style));
    if (facts->kernels) {
        putc('\n', style->stream);
        TRY(columns_print(&kernel_row_columns, IN_TEXT, NULL,
                          COLUMN_RECORDS(facts->kernels->of, facts->kernels->count), style->stream,
                          style->width));
        if (!verbose)
            print_clock(facts, style);
    }
    putc('\n', style->stream);
    print_verdict(facts, style);
    return HEALCL_OK;
}
