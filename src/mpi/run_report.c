#include "mpi/run_report.h"

#include "cli/report.h"

cJSON *report_run_ranks(const struct run_ranks_facts *facts)
{
    cJSON *document = json_report();
    JSON_ADD(document, STRING("transcript", facts->file),
             NUMBER("rank_count", facts->split->ranks));
    if (facts->split->ranks > 1)
        report_add_split(json_add_object(document, "split"), facts->part, facts->split,
                         facts->is_chosen);
    json_add_number(document, "repeat", facts->repeat);
    report_add_exchanges(document, facts->part);
    JSON_ADD(document, NUMBER("results_compared", facts->compared),
             NUMBER("results_different", facts->different));
    cJSON *ranks = json_add_array(document, "ranks");
    for (uint32_t i = 0; i < facts->split->ranks; i++) {
        const struct ran *ran = &facts->ranks[i];
        cJSON *object = json_add_object(ranks, NULL);
        JSON_ADD(object, NUMBER("rank", ran->rank), STRING("host", ran->host),
                 STRING("device", ran->device), NUMBER("ns", ran->nanoseconds),
                 NUMBER("exchange_ns", ran->exchange_nanoseconds),
                 NUMBER("bytes_sent", ran->bytes_sent),
                 NUMBER("bytes_foreseen", ran->bytes_foreseen),
                 NUMBER("bytes_uploaded", ran->bytes_uploaded),
                 NUMBER("tensor_bytes", ran->tensor_bytes),
                 NUMBER("device_bytes_peak", ran->device_bytes));
    }
    report_add_parts(document, facts->part);
    return document;
}

void report_run_ranks_text(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"rank", "{rank}", VIEW_RIGHT},
        {"host", "{host}", VIEW_SHRINKS},
        {"device", "{device}", VIEW_SHRINKS},
        {"time", "{ns:time}", VIEW_RIGHT},
        {"exchange", "{exchange_ns:time}", VIEW_RIGHT},
        {"sent", "{bytes_sent:bytes}", VIEW_RIGHT},
        {"uploaded", "{bytes_uploaded:bytes}", VIEW_RIGHT},
        {"memory", "{device_bytes_peak:bytes}", VIEW_RIGHT},
    };
    view_line(style, document, "transcript", "{transcript}");
    view_line(style, json_at(document, "split"), "split", REPORT_SPLIT);
    putc('\n', style->stream);
    VIEW_TABLE(style, json_at(document, "ranks"), columns);
    putc('\n', style->stream);
    (void)view_text(style, document,
                    json_number_at(document, "results_different") > 0
                        ? "different: {results_different} of {results_compared} "
                          "result{results_compared:s}"
                    : json_number_at(document, "results_compared") > 0
                        ? "verified: {results_compared} of {results_compared} "
                          "result{results_compared:s}"
                        : "nothing to verify");
}
