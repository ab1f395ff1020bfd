/* docs/OPS.md: the operation table, with what the table has no room for. */
#include <ctype.h>
#include <string.h>

#include "report/report.h"
#include "report/signature.h"

static const char preface[] =
    "# Operations\n"
    "\n"
    "<!-- Made by `healcl ops --markdown` from src/ops/ops.def; a test compares the two. -->\n"
    "\n"
    "Every operation that a HEAL transcript may name, in every form that healcl reads.\n"
    "\n"
    "- A name means the same with and without a leading underscore: `modmul_ttt`, `_modmul_ttt`.\n"
    "- In a suffix t is a tensor and c an integer. Without one the kinds of the arguments decide.\n"
    "- An argument **out** is a tensor that exists, of exactly the result's shape. It may be an\n"
    "  input or overlap one, as if every input were read first, but not itself. The operation's "
    "own\n"
    "  `out` repeats its name; another name becomes one more name of it. Other operations make a\n"
    "  new tensor under that name.\n"
    "- Broadcasting is NumPy's: aligned at the last axis, sizes equal or 1.\n"
    "- Moduli broadcast as all operands do. HEAL's SDK refuses a `p` whose last axis is not as\n"
    "  long as the others'; here one of size 1 stands for all, and so does a `p` of rank 0.\n"
    "- Axes may be negative.\n"
    "- Values are exact integers of unlimited width until the final store. \"C remainder\" has "
    "the\n"
    "  sign of the dividend; \"mod\" alone is the floor remainder, in [0, p). Moduli lie in\n"
    "  [1, 2^63). Inputs need not be reduced and may be negative.\n"
    "- Tensors of one operation have one dtype, but where it says otherwise: int8, int32 or int64\n"
    "  where it names none. Tensors of indices may be int32 or int64.\n"
    "\n"
    "| kind | what stands for it in the transcript |\n"
    "|---|---|\n"
    "| tensor, or none told | `DEVICE_TENSOR`, read |\n"
    "| out | `DEVICE_TENSOR`, written |\n"
    "| scalar | `INT` of up to 64 bits, used as a value |\n"
    "| modulus | `INT` in [1, 2^63) |\n"
    "| int | `INT`: an axis, a count |\n"
    "| flag | `INT` that is 0 or 1 |\n"
    "| perm | `DEVICE_TENSOR`, or `NONE` where it is not used |\n"
    "| hint | `DEVICE_TENSOR`, `INT` or `NONE`; results do not depend on it |\n"
    "| shape | `SHAPE` of `INT`s |\n"
    "| index | `SHAPE` of `INT`, `SLICE` and `ELLIPSIS` |\n"
    "| dtype | `TENSOR_TYPE`: int8, int32 or int64 |\n"
    "| host | `HOST_TENSOR`: a .npy file in base64 |\n"
    "| none | `NONE` |\n";

struct note {
    enum operation_id operation;
    const char *text;
};

/* What one line cannot say. */
static const struct note notes[] = {
    {OPERATION_HOST_TO_DEVICE,
     "The payload is a .npy file of version 1.0 to 3.0, dtype `<i8`, `<i4`, `|i1` or their\n"
     "big-endian twins, in C or Fortran order; the tensor is in C order either way.\n"},
    {OPERATION_DEVICE_TO_HOST,
     "The operation's `out` holds the expected tensor. Values are compared whatever the dtypes;\n"
     "the order in the file plays no part. Without an embedded tensor nothing is compared.\n"},
    {OPERATION_FREE_DEVICE_TENSOR,
     "The same as an entry `FREE_DEVICE_TENSOR`. Other names that view the tensor stay valid.\n"},
    {OPERATION_RESHAPE,
     "Where the strides of `a` allow it the result shares its storage, so that writes through one\n"
     "are seen through the other; else it is a copy, as in NumPy and torch.\n"},
    {OPERATION_EXPAND,
     "The runtime of HEAL's SDK has `repeats` before `axis`. The reading is taken that is valid;\n"
     "where both are, the one that stands here "
     "([HEAL-SDK.md](HEAL-SDK.md#the-order-of-expand)).\n"},
    {OPERATION_GET_SLICE,
     "An `INT` beyond the axis is an error. In a `SLICE` null means the default; negative bounds\n"
     "count from the end, and are clamped.\n"},
    {OPERATION_MODMUL, "`p` may have any shape that broadcasts to `out`'s.\n"},
    {OPERATION_MODSUM, "`p` may have any shape that broadcasts to `out`'s.\n"},
    {OPERATION_MODMUL_AXIS_SUM,
     "For every l, with m = perm[l] if `apply_perm` else l:\n"
     "\n"
     "    axis -1 (default)  out[r,j,m] = (out[r,j,m] + sum over i of a[r,i,j,l]*b[i,j,m]) mod "
     "q[j]\n"
     "    axis -3            out[r,m,j] = (out[r,m,j] + sum over i of a[r,l,i,j]*b[m,i,j]) mod "
     "q[j]\n"
     "\n"
     "What `out` held need not be reduced; what it gets lies in [0, q). `perm` must be a\n"
     "permutation of 0..n-1 where it is applied. The form of 5 arguments has no permutation.\n"},
    {OPERATION_NTT,
     "n is a power of two, `q` [k], `psi` [k,n] with psi^bitreverse(i) at i, psi a primitive 2n-th "
     "root of unity. Cooley-Tukey,\n"
     "natural order in: for m = 1, 2, 4 ... n/2, with t = n/2m, block i uses w = psi[m + i]:\n"
     "\n"
     "    (x, y) <- (x + y*w, x - y*w)     for each pair at distance t\n"
     "\n"
     "That leaves bit-reversed order; then out[u] = x[perm[u]], unless `skip_perm`. With `tile`\n"
     "`a` is read for every modulus.\n"
     "Inputs are reduced into [0, q) first, outputs lie there, for every q in [1, 2^63). That q "
     "is\n"
     "prime and psi a root is not checked: the formulas define the result. `perm` must be a\n"
     "permutation of 0..n-1, not necessarily the bit reversal; NONE only with `skip_perm`.\n"},
    {OPERATION_INTT, "The inverse of `ntt`. First x[perm[u]] = a[u], then Gentleman-Sande: for m = "
                     "n/2 ... 1, with\n"
                     "t = n/2m, block i uses w = ipsi[m + i]:\n"
                     "\n"
                     "    (x, y) <- (x + y, (x - y)*w)     for each pair at distance t\n"
                     "\n"
                     "and a final multiplication by n_inv [k].\n"},
    {OPERATION_G_DECOMP,
     "`out` has one axis more than `a`, of size g_exp, at the end. A negative value stands for "
     "its\n"
     "two's complement bits at the width of `a`, zeros above. Digits beyond g_exp are dropped: a\n"
     "warning, counted, not an error. A digit that `out`'s dtype does not hold wraps.\n"},
    {OPERATION_G_DECOMP_FULL_Q,
     "`a` is [l,k,r], `out` [l,g_exp,r]. The value is that in [0, product of q) with these "
     "residues,\n"
     "which need not be reduced; it may have thousands of bits. Moduli that are not coprime are "
     "an\n"
     "error. `q_inv`, `level_bits` and `level_inv` are precomputed hints that are not read.\n"},
    {OPERATION_TAKE_ALONG_AXIS, "`a`, `idx` and `out` have one rank; off the axis, `a` and `idx` "
                                "broadcast to `out`. An index\n"
                                "outside of [-n, n) is an error.\n"},
    {OPERATION_PERMUTE, "`perms` is [a.shape[elementwise_axis], a.shape[perm_axis]]; its entries "
                        "lie in [0, size), its\n"
                        "rows need not be permutations.\n"},
};

static bool has_same_parameters(const struct form *a, const struct form *b)
{
    if (a->operation != b->operation || a->parameter_count != b->parameter_count)
        return false;
    for (uint32_t i = 0; i < a->parameter_count; i++)
        if (a->parameters[i].kind != b->parameters[i].kind ||
            strcmp(a->parameters[i].name, b->parameters[i].name) != 0)
            return false;
    return true;
}

static void print_parameters(FILE *stream, const struct form *form)
{
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        const struct healcl_parameter_info *parameter = &form->parameters[i];
        const char *kind = parameter_traits[parameter->kind].name;
        fprintf(stream, "%s%s", i > 0 ? ", " : "", parameter->name);
        if (strcmp(kind, "tensor") != 0 && strcmp(kind, parameter->name) != 0)
            fprintf(stream, " *%s*", kind);
    }
}

/* A line for all names that take the same parameters, at the first of them. */
static void print_form(FILE *stream, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (has_same_parameters(&forms[i], &forms[index]))
            return;
    fprintf(stream, "- `%s`", forms[index].name);
    for (size_t i = index + 1; i < form_count; i++)
        if (has_same_parameters(&forms[i], &forms[index]))
            fprintf(stream, ", `%s`", forms[i].name);
    fprintf(stream, ": ");
    print_parameters(stream, &forms[index]);
    fprintf(stream, "\n");
}

static void print_operation(FILE *stream, const struct operation *operation)
{
    char dtypes[DTYPES_TEXT_SIZE];
    const char *rule = dtype_rule_text(&operation->dtypes, dtypes);
    fprintf(stream, "\n### %s\n\n%c%s.\n", operation->name,
            toupper((unsigned char)operation->meaning[0]), operation->meaning + 1);
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (&operations[notes[i].operation] == operation)
            fprintf(stream, "\n%s", notes[i].text);
    if (strcmp(rule, "int8, int32, int64") != 0)
        fprintf(stream, "\nDtypes: %s.\n", rule);
    fprintf(stream, "\n");
    for (size_t i = 0; i < form_count; i++)
        if (forms[i].operation == operation)
            print_form(stream, i);
}

void report_operations_markdown(FILE *stream)
{
    const char *family = "";
    fputs(preface, stream);
    for (size_t id = 0; id < OPERATION_COUNT; id++) {
        const struct operation *operation = &operations[id];
        if (strcmp(operation->family, family) != 0) {
            family = operation->family;
            fprintf(stream, "\n## %c%s\n", toupper((unsigned char)family[0]), family + 1);
        }
        print_operation(stream, operation);
    }
}
