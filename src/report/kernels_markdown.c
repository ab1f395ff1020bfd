/* docs/KERNELS.md: the tables of variants, with what they have no room for. */
#include <string.h>

#include "kernels/variant.h"
#include "report/report.h"

static const char preface[] =
    "# Kernels\n"
    "\n"
    "<!-- Made by `healcl ops --kernels` from the tables in src/kernels; a test compares the two. "
    "-->\n"
    "\n"
    "A step of a plan ([steps.def](../src/plan/steps.def)) is run by a family of kernels. A "
    "family's\n"
    "variants are listed the best first; a step gets the first one whose shape the device's "
    "tuning\n"
    "asks for, and that can run it.\n"
    "`healcl inspect --kernels FILE` shows which that is for a transcript on a device, and why not "
    "the\n"
    "others. Tunables stand behind the semicolon.\n"
    "\n"
    "| shape | for | work-items |\n"
    "|---|---|---|\n"
    "| `general` | anything | thin or fat, any layout |\n"
    "| `vectors` | CPUs | few fat ones with vectors of eight |\n"
    "| `local` | GPUs | work-groups of thin ones that share local memory |\n"
    "| `single` | FPGAs | one, with loops of fixed bounds |\n";

/* How a family goes through memory. */
static const struct {
    const char *family, *text;
} drawings[] = {
    {"elementwise",
     "    out [row 0 ........][row 1 ........]   a work-item takes elements_per_item elements in a "
     "row;\n"
     "     a  [row 0 ........][row 1 ........]   vectors: eight at a time, the next pages asked "
     "for\n"
     "     p  q0 q1 q0 q1 q0 q1                  moduli and their inverses from a derived table\n"
     "\n"
     "     a  [x0 x1]......[x2 x3]......[x4 x5]  interleaved: groups of k = 1, 2 or 4 elements, "
     "8 / k of\n"
     "                                           them in a vector, 512 in a block of a "
     "work-item\n"},
    {"fill", "    out [row 0 ........]   lines: whole cache lines, stored past the caches\n"},
    {"absolute", "     a  [row 0 ........]   lines: whole cache lines, as they lie in memory,\n"
                 "    out [row 0 ........]   stored past the caches\n"},
    {"copy",
     "    in  [l,n,r,k]: neighbours along k   tiles: blocks of 16 KiB of both that fit the first "
     "cache\n"
     "    out [l,r,k,n]: neighbours along n   lines: whole cache lines, stored past the caches\n"
     "                                    transpose: tiles of 8 KiB through local memory\n"},
    {"axis_modsum",
     "    a   term 0 [c0 c1 c2 ... c63]   vectors: the sums of 64 vectors of columns stay in the "
     "first\n"
     "        term 1 [c0 c1 c2 ... c63]   cache while terms go by, four rows at a time\n"
     "    out        [s0 s1 s2 ... s63]   reduced once, at the end\n"
     "\n"
     "    a   [t0 t0' t1 t1' ...]         rows: terms by lanes of one vector, which are added up "
     "last\n"
     "    out [s0 s1]......[s2 s3]....    interleaved: sums as for vectors, stored by groups of "
     "k\n"},
    {"modmul_axis_sum",
     "    a [reps,s,k,n]  b [s,k,n]: blocks of 64 vectors of n; b is packed once for all reps "
     "that\n"
     "            share it\n"
     "    rows: eight rows of HEAL's [reps,n,s,k] at a time, folded into vectors of results\n"},
    {"transform",
     "    rows    row -> tiles of 4096 in the first cache -> 16 blocks in lanes -> row   (one "
     "work-item)\n"
     "            HEAL's [l,n,r,k]: eight interleaved rows to scratch memory, each as above, and "
     "back\n"
     "    local   row -> tile in local memory, 16 elements a work-item in registers -> row\n"
     "            longer rows: columns, then blocks, in two passes\n"
     "    single  row -> local memory -> row, one butterfly after the other in a pipeline\n"
     "    stages  load, all stages in global memory with barriers, store\n"},
    {"digits", "    a   [v0 v1 v2 ...]           vectors: eight digits of a value are shifted and "
               "masked at once\n"
               "    out [d0..d15][d0..d15] ...\n"},
    {"digits_full_q",
     "    a   [l,k,r] -> the words of 64 values, by mixed radix, in private or local memory\n"
     "    out [l,i,r]: one digit of all 64 values after the other, shifted and masked\n"},
    {"gather",
     "    rows: a work-item touches a whole row of a, in order, then takes from it by indices\n"},
};

static void print_kinds(FILE *stream, const struct family *family)
{
    const char *before = "";
    for (int kind = 0; kind < STEP_KINDS; kind++)
        if (family_of((enum step_kind)kind) == family) {
            fprintf(stream, "%s%s", before, step_traits[kind].name);
            before = ", ";
        }
}

static void print_variant(FILE *stream, const struct variant *variant)
{
    const char *before = "; ";
    fprintf(stream, "- `%s`, %s: %s, [%s](../%s)", variant->name, kernel_shape_name(variant->shape),
            variant->when, variant->source, variant->source);
    for (int i = 0; i < TUNABLE_COUNT; i++)
        if (variant->tunables >> i & 1) {
            fprintf(stream, "%s`%s`", before, tunable_name((enum tunable)i));
            before = ", ";
        }
    putc('\n', stream);
}

void report_kernels_markdown(FILE *stream)
{
    const struct family *family;
    fputs(preface, stream);
    for (size_t place = 0; (family = family_at(place)); place++) {
        fprintf(stream, "\n## %s\n\nSteps: ", family->name);
        print_kinds(stream, family);
        fprintf(stream, ". Tuned as `%s`.\n\n", kernel_family_name(family->preference));
        for (size_t i = 0; i < sizeof drawings / sizeof *drawings; i++)
            if (strcmp(drawings[i].family, family->name) == 0)
                fprintf(stream, "%s\n", drawings[i].text);
        for (size_t i = 0; i < family->count; i++)
            print_variant(stream, &family->variants[i]);
    }
}
