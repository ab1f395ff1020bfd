#include "run/audit_draw.h"

#include "run/audit_slice.h"

/* Runs that a balance may be saved up for, and audits that a run should have. */
enum { SAVED_RUNS = 4, AUDITS_A_RUN = 2, FRESH_RUNS = 16 };

/* ---------------------------------------------------------------- queues */

static void append(struct audit_draw *draw, uint32_t number, bool is_fresh)
{
    struct audit_class *class = &draw->classes[number];
    const int queue = is_fresh ? 0 : 1;
    class->is_fresh = is_fresh;
    class->next = AUDIT_NO_CLASS;
    class->previous = draw->queues[queue].last;
    if (class->previous == AUDIT_NO_CLASS)
        draw->queues[queue].first = number;
    else
        draw->classes[class->previous].next = number;
    draw->queues[queue].last = number;
}

static void take_out(struct audit_draw *draw, uint32_t number)
{
    struct audit_class *class = &draw->classes[number];
    const int queue = class->is_fresh ? 0 : 1;
    if (class->previous == AUDIT_NO_CLASS)
        draw->queues[queue].first = class->next;
    else
        draw->classes[class->previous].next = class->next;
    if (class->next == AUDIT_NO_CLASS)
        draw->queues[queue].last = class->previous;
    else
        draw->classes[class->next].previous = class->previous;
}

static bool has_unseen(const struct audit_draw *draw, const struct audit_class *class)
{
    for (size_t i = 0; i < class->pair_count; i++)
        if (!draw->pair_seen[draw->class_pairs[class->first_pair + i]])
            return true;
    return false;
}

/* Those that bring a pair of their own stand before those that do not; apart from that, anyhow. */
void audit_draw_init(struct audit_draw *draw, uint64_t seed)
{
    uint64_t random = seed;
    for (int queue = 0; queue < 2; queue++)
        draw->queues[queue].first = draw->queues[queue].last = AUDIT_NO_CLASS;
    for (uint32_t i = 0; i < draw->class_count; i++)
        draw->classes[i].next = i;
    for (uint32_t i = draw->class_count; i > 1; i--) {
        const uint32_t j = (uint32_t)(audit_random(&random) % i);
        const uint32_t held = draw->classes[i - 1].next;
        draw->classes[i - 1].next = draw->classes[j].next;
        draw->classes[j].next = held;
    }
    for (uint32_t i = 0; i < draw->class_count;
         i++) /* the order is read before it is overwritten */
        draw->classes[i].mark = draw->classes[i].next;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < draw->class_count; i++) {
            const uint32_t number = (uint32_t)draw->classes[i].mark;
            struct audit_class *class = &draw->classes[number];
            if (pass == 0)
                class->audits = has_unseen(draw, class);
            for (size_t j = 0; j < class->pair_count; j++)
                draw->pair_seen[draw->class_pairs[class->first_pair + j]] = true;
            if (class->audits == (pass == 0))
                append(draw, number, true);
        }
    for (uint32_t i = 0; i < draw->class_count; i++) {
        struct audit_class *class = &draw->classes[i];
        for (size_t j = 0; j < class->pair_count; j++)
            draw->pair_seen[draw->class_pairs[class->first_pair + j]] = false;
        class->audits = class->mark = 0;
        if (class->cost > draw->dearest)
            draw->dearest = class->cost;
    }
}

/* ---------------------------------------------------------------- time */

double audit_draw_balance(const struct audit_draw *draw, uint64_t now)
{
    const double in_run = draw->run_start > 0 ? (double)(now - draw->run_start) : 0;
    return draw->share * (draw->elapsed + in_run) - draw->spent - draw->forfeited;
}

/* While there are classes that nobody has looked at, audits are small, and many. */
static double worth(const struct audit_draw *draw)
{
    uint32_t fresh = 0;
    for (uint32_t i = draw->queues[0].first; i != AUDIT_NO_CLASS; i = draw->classes[i].next)
        fresh++;
    const double wanted =
        fresh > AUDITS_A_RUN * FRESH_RUNS ? (double)fresh / FRESH_RUNS : (double)AUDITS_A_RUN;
    return draw->share * draw->last_run / wanted;
}

void audit_draw_begin(struct audit_draw *draw, uint64_t now)
{
    draw->run++;
    draw->run_start = now > 0 ? now : 1;
    draw->least = worth(draw);
}

/* What is left of the first run, in which kernels are built, is not for the second. */
void audit_draw_end(struct audit_draw *draw, uint64_t now)
{
    const double length = (double)(now - draw->run_start);
    const double usual = length < draw->last_run ? length : draw->last_run;
    const double saved = draw->share * SAVED_RUNS * usual;
    const double most = saved > 2 * draw->dearest ? saved : 2 * draw->dearest;
    draw->elapsed += length;
    draw->run_start = 0;
    const double balance = audit_draw_balance(draw, now);
    if (balance > most)
        draw->forfeited += balance - most;
    draw->last_run = length;
    if (draw->run == 1)
        draw->last_run = 0;
}

/* ---------------------------------------------------------------- drawing */

size_t audit_draw_classes(struct audit_draw *draw, uint64_t now, const uint32_t *here, size_t count,
                          uint32_t *picks, size_t most)
{
    const double balance = audit_draw_balance(draw, now);
    double reserved = 0;
    size_t drawn = 0;
    draw->mark++;
    for (size_t i = 0; i < count; i++) {
        draw->classes[here[i]].run = draw->run;
        draw->classes[here[i]].mark = draw->mark;
    }
    for (int queue = 0; queue < 2 && drawn < most && count > 0; queue++)
        for (uint32_t i = draw->queues[queue].first; i != AUDIT_NO_CLASS && drawn < most;
             i = draw->classes[i].next) {
            const struct audit_class *class = &draw->classes[i];
            if (class->run + 1 < draw->run || class->run == 0)
                continue; /* nobody knows when it comes */
            reserved += class->cost > draw->least ? class->cost : draw->least;
            if (reserved > balance)
                return drawn;
            if (class->mark == draw->mark)
                picks[drawn++] = i;
        }
    return drawn;
}

void audit_draw_done(struct audit_draw *draw, uint32_t number)
{
    struct audit_class *class = &draw->classes[number];
    class->audits++;
    take_out(draw, number);
    append(draw, number, has_unseen(draw, class));
}
