/*
 * healcl: runs HEAL transcripts on OpenCL devices and proves every result.
 *
 * Three calls handle a file: open (scan, decode and plan; finds every error that needs no device),
 * run (on a device, or on the host reference), close.
 *
 * Conventions
 * - A function that can fail returns an enum healcl_status and takes a struct healcl_error, which
 *   may be NULL. On failure it returns nothing else, and leaves nothing to free.
 * - Handles are opaque and belong to the caller until the function named ..._close or ..._free.
 * - Handles are not locked: one thread at a time for each handle and what was made from it. Threads
 *   may work on different handles at the same time; opening devices takes turns.
 */
#ifndef HEALCL_H
#define HEALCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
/* Only what this header declares is exported. */
#pragma GCC visibility push(default)
#define HEALCL_MUST_CHECK __attribute__((warn_unused_result))
#else
#define HEALCL_MUST_CHECK
#endif
#if defined(__clang__) /* clang applies it to types, gcc only to functions */
#define HEALCL_MUST_CHECK_TYPE HEALCL_MUST_CHECK
#else
#define HEALCL_MUST_CHECK_TYPE
#endif

/* ---------------------------------------------------------------- errors */

enum HEALCL_MUST_CHECK_TYPE healcl_status {
    HEALCL_OK,
    HEALCL_DIFFERENT, /* a result differs from the one the transcript expects */
    HEALCL_USAGE,     /* a bad option, an unknown device, a file that cannot be read or written */
    HEALCL_REFUSED,   /* the transcript is malformed, or its data break an operation's rules */
    HEALCL_DEVICE,    /* the device or OpenCL failed */
    HEALCL_NO_MEMORY, /* the host ran out of memory */
    HEALCL_CANCELLED, /* the caller cancelled the run or call */
};

/* The cause of an error, for programs; the message is for people. Several causes share a status. */
enum healcl_cause {
    HEALCL_CAUSE_NONE,     /* none of these, as for HEALCL_DIFFERENT and HEALCL_CANCELLED */
    HEALCL_CAUSE_ARGUMENT, /* a value, an axis, a count or a kind of argument that is not allowed */
    HEALCL_CAUSE_SHAPE,
    HEALCL_CAUSE_DTYPE,
    HEALCL_CAUSE_DATA,      /* only the elements reveal it: an index out of range, a modulus of 0 */
    HEALCL_CAUSE_OPERATION, /* there is no such operation */
    HEALCL_CAUSE_LIMIT,     /* a limit of memory or work, or what a device can hold */
    HEALCL_CAUSE_FORMAT,    /* a transcript, manifest or package that is not what it should be */
    HEALCL_CAUSE_FILE,      /* a file that cannot be read or written */
    HEALCL_CAUSE_STATE,     /* a function at the wrong time: nothing runs, no result is there */
    HEALCL_CAUSE_DEVICE,
    HEALCL_CAUSE_MEMORY, /* the host ran out of it */
};

struct healcl_error {
    enum healcl_status status;
    enum healcl_cause cause;
    int64_t entry;     /* of the transcript, or the call of the queue, counted from 0; -1: none */
    int64_t operation; /* its number, see healcl_operation_describe; -1: none */
    int32_t argument;  /* its number in the form that was called, counted from 0; -1: none */
    int opencl_code;   /* the cl_int behind HEALCL_DEVICE, else 0 */
    const char *file;  /* the place in healcl's source that noticed */
    int line;
    char message[640]; /* one line, no full stop: "entry 17 (_modmul_ttt): argument 'b': ..." */
    char *detail;      /* several lines, or NULL: the log of a failed kernel build; owned here */
};

/* Frees what the error owns and makes it empty. */
void healcl_error_clear(struct healcl_error *error);

/* A word for a status, e.g. "refused". */
const char *healcl_status_name(enum healcl_status status);

/* A word for a cause, e.g. "shape". */
const char *healcl_cause_name(enum healcl_cause cause);

/* "0.1.0" */
const char *healcl_version(void);

/* ---------------------------------------------------------------- vendors' operations */

/* Operations and kernels of vendors' manifests: docs/VENDORS.md. */
struct healcl_operations;

/*
 * Reads all manifests, *.json, of a folder. A *handle of NULL becomes a new handle; another one
 * gets the manifests added. Shared libraries that manifests name are loaded: native code from
 * whoever wrote the folder. Threads may share a handle once nothing is added to it any more.
 * Transcripts and queues that were opened with it retain it. Close devices that ran its operations
 * before the last of these.
 * Errors: HEALCL_REFUSED for a wrong manifest, with file, line and field; HEALCL_USAGE for what
 * cannot be read; HEALCL_NO_MEMORY. After an error an existing handle may only be freed. A manifest
 * is code in any case: its kernels run on the device, and on a CPU in this process.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_operations_load(const char *folder,
                                                            struct healcl_operations **handle,
                                                            struct healcl_error *error);
/* As healcl_operations_load, but manifests may name links out of the folder, and pass any options
 * to compilers. Such options can read, or write, any file. */
HEALCL_MUST_CHECK enum healcl_status healcl_operations_load_trusted(
    const char *folder, struct healcl_operations **handle, struct healcl_error *error);
void healcl_operations_free(struct healcl_operations *handle);

/* ---------------------------------------------------------------- operations at run time */

/* The kind of argument that a parameter takes; docs/OPS.md has the same words. */
enum healcl_parameter_kind {
    HEALCL_PARAMETER_TENSOR,  /* a tensor that is read */
    HEALCL_PARAMETER_INDICES, /* a tensor of indices, int32 or int64 */
    HEALCL_PARAMETER_OUT,     /* a tensor that is written */
    HEALCL_PARAMETER_SCALAR,  /* an integer that is used as a value */
    HEALCL_PARAMETER_MODULUS, /* an integer in [1, 2^63) */
    HEALCL_PARAMETER_INT,     /* an integer: an axis, a count */
    HEALCL_PARAMETER_FLAG,    /* 0 or 1 */
    HEALCL_PARAMETER_PERM,    /* a tensor of indices, or nothing where it is not used */
    HEALCL_PARAMETER_HINT,    /* a tensor, an integer or nothing; it is not read */
    HEALCL_PARAMETER_SHAPE,
    HEALCL_PARAMETER_INDEX,
    HEALCL_PARAMETER_DTYPE,
    HEALCL_PARAMETER_HOST, /* a tensor in a transcript's file: no call takes one */
    HEALCL_PARAMETER_NOTHING,
};

struct healcl_parameter_info {
    const char *name;
    enum healcl_parameter_kind kind;
    bool optional; /* may be nothing, healcl_no_argument */
};

/* A name of an operation and a list of arguments. A name may have several lists, which differ in
 * the number or the kinds of arguments. */
struct healcl_form_info {
    const char *name; /* may be called with an underscore in front, too */
    uint32_t parameter_count;
    const struct healcl_parameter_info *parameters;
};

struct healcl_operation_info {
    const char *name, *family, *meaning; /* as in docs/OPS.md; no two share a form's name */
    uint32_t dtypes;                     /* bit i: tensors of values may be of healcl_dtype i */
    const char *other;                   /* the one parameter that need not be of their dtype: */
    uint32_t other_dtypes;               /* bit i: it may also be of healcl_dtype i; or NULL */
    uint32_t form_count;
    const struct healcl_form_info *forms;
    const char *manifest; /* its file, without the folder; NULL: built in */
};

/*
 * Describes an operation by its number: built-in ones first, then those of manifests. operations:
 * the latter, or NULL for the built-in ones alone, whose numbers are the same throughout a version.
 * Returns false beyond the last. Pointers in info live as long as operations. Only a call shows
 * which dtypes each parameter of a manifest's operation may have.
 */
bool healcl_operation_describe(const struct healcl_operations *operations, size_t number,
                               struct healcl_operation_info *info);

/* The names of the built-in operations, by number; NULL beyond the last. */
const char *healcl_operation_name(size_t number);

/* ---------------------------------------------------------------- transcripts */

struct healcl_transcript;

/* How the integers after the tensor of `expand` are read: docs/HEAL-SDK.md. */
enum healcl_expand {
    /* The valid one of the two; if both are, the specification's, and runs warn. */
    HEALCL_EXPAND_VALID,
    HEALCL_EXPAND_SPECIFICATION, /* axis, repeats */
    HEALCL_EXPAND_SDK,           /* repeats, axis: by the runtime of HEAL's SDK */
};

struct healcl_limits {
    /* Most bytes of a tensor, and of all tensors at one time. It includes what an operation needs
     * in proportion to views: the packed copy of a download that is not contiguous, the tables of a
     * CRT. 0: 2^63-1 */
    uint64_t memory_bytes;
    /* Most elements that an operation may visit: the terms of its sums, n (1 + log2 n) for a
     * transform of length n, elements copied or compared; however few of them are stored. 0:
     * 2^42 */
    uint64_t work;
    /* Not a limit: operations that may be named beside the built-in ones, or NULL. */
    const struct healcl_operations *operations;
    enum healcl_expand expand; /* nor this one */
    /* Passes of a transcript, which make its segments faster and change no result: names (`healcl
     * inspect --help`) separated by commas, or "none". NULL: all of them */
    const char *passes;
};

/*
 * Maps a transcript, checks it whole and plans it. limits may be NULL.
 * Errors: HEALCL_USAGE if the file cannot be read or there is no such pass; HEALCL_REFUSED with
 * entry, operation and argument in the message; HEALCL_NO_MEMORY. A packed file is unpacked in the
 * folder TMPDIR. Any other stays open and mapped until the transcript is closed. If it is written
 * to, or truncated, before that, runs and comparisons are HEALCL_REFUSED with HEALCL_CAUSE_FILE,
 * unless all is as expected. Its size is looked at before each tensor is read. If it is truncated
 * while that is read, or its disk fails, the process gets SIGBUS. The library installs no handler
 * for it; the program healcl does.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_open(const char *path,
                                                            const struct healcl_limits *limits,
                                                            struct healcl_transcript **transcript,
                                                            struct healcl_error *error);

/* As healcl_transcript_open, for a transcript in memory, of length bytes, packed or not. data
 * belongs to the caller, and must not change until the transcript is closed. */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_open_memory(
    const void *data, size_t length, const struct healcl_limits *limits,
    struct healcl_transcript **transcript, struct healcl_error *error);
void healcl_transcript_close(struct healcl_transcript *transcript);

/* Element types of tensors: two's complement, in the host's byte order. */
enum healcl_dtype {
    HEALCL_INT8,
    HEALCL_INT32,
    HEALCL_INT64,
};

/* A tensor that a transcript uploads or downloads. All of it belongs to the transcript. */
struct healcl_tensor_info {
    const char *name; /* of the device's tensor: digits, or text in double quotes */
    size_t entry;     /* its entry of the transcript, counted from 0 */
    size_t segment;   /* counted from 0 */
    enum healcl_dtype dtype;
    uint32_t rank;
    const int64_t *shape; /* rank sizes */
    size_t bytes;         /* of its elements, packed */
    bool has_data;        /* an input comes with data; a result, with the expected tensor */
};

/* Inputs are the uploads of at least one element, results all downloads. Both are in the
 * transcript's order. Sessions refer to them by their numbers, from 0. *count is 0 for a NULL
 * transcript. */
const struct healcl_tensor_info *healcl_transcript_inputs(
    const struct healcl_transcript *transcript, size_t *count);
const struct healcl_tensor_info *healcl_transcript_results(
    const struct healcl_transcript *transcript, size_t *count);

/*
 * Copies the elements that the file has for an input, or that it expects of a result: packed and in
 * C order, of the shape and dtype in struct healcl_tensor_info. Each call decodes them. bytes:
 * exactly their size. Errors: HEALCL_USAGE for a number that does not exist, if has_data is false,
 * and for another number of bytes; HEALCL_REFUSED for an expected tensor of another shape than the
 * result, or with a value that the result's dtype does not hold, and for a file that has changed;
 * HEALCL_NO_MEMORY.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_read_input(
    const struct healcl_transcript *transcript, size_t input, void *memory, size_t bytes,
    struct healcl_error *error);
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_read_expected(
    const struct healcl_transcript *transcript, size_t result, void *memory, size_t bytes,
    struct healcl_error *error);

/*
 * Makes a transcript that processes `batch` requests at once. The given inputs, by number, whose
 * data come with each request, have a new first axis of `batch` requests. So has each result that
 * depends on them: request i is slice [i]. All other inputs are unchanged, and read once for all:
 * keys, weights, tables. Numbers of inputs, results and segments are the same. Sessions open on it
 * as on any transcript, and these inputs must be bound:
 *
 *     healcl_transcript_widen(transcript, (size_t[]){input}, 1, 8, &wide, &error);
 *     healcl_session_open(wide, device, NULL, &session, &error);
 *     healcl_session_bind(session, input, eight_images, &error);
 *
 * The caller closes *wide, which retains what it needs of transcript, and has its limits and
 * passes. Data that make one request refuse are an error of the whole run. A result with an
 * expected tensor is compared slice by slice. Errors: HEALCL_USAGE for a batch below 1, or an input
 * that does not exist; HEALCL_REFUSED for more than 65,536 requests, beyond the limits, and for
 * what cannot be widened, with entry and operation: operations of manifests without a body, and
 * transfers of tensors of 16 axes; HEALCL_NO_MEMORY.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_widen(
    const struct healcl_transcript *transcript, const size_t *inputs, size_t input_count,
    int64_t batch, struct healcl_transcript **wide, struct healcl_error *error);

/* The number of segments, and the name of one: "" for operations outside any; NULL beyond the
 * last. */
size_t healcl_transcript_segment_count(const struct healcl_transcript *transcript);
const char *healcl_transcript_segment_name(const struct healcl_transcript *transcript,
                                           size_t segment);

/* ---------------------------------------------------------------- one request, many ranks */

/*
 * A rank's part of a transcript: an input is split along an axis, and with it everything that the
 * axis runs through. The rest is whole on each rank. Where the axis is summed, each rank has a
 * summand. Ranks exchange summands while they run (struct healcl_session_options), so that each has
 * the whole sum.
 */
struct healcl_split {
    size_t input; /* its number */
    uint32_t axis;
    uint32_t rank, ranks; /* rank is in [0, ranks) */
};

/*
 * Makes the part of a rank: a transcript of its own, of the same file. If the axis does not divide
 * evenly, the first ranks have one more index. A segment ends with each exchange, so several may
 * have the same name; numbers of inputs and results stay. transcript may be closed first. Errors:
 * HEALCL_USAGE for an input, axis or rank that does not exist, more ranks than indices, and a
 * transcript that is a part; HEALCL_REFUSED if an operation mixes the axis or takes a part of it,
 * with entry and operation; HEALCL_NO_MEMORY.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_split(
    const struct healcl_transcript *transcript, const struct healcl_split *split,
    struct healcl_transcript **part, struct healcl_error *error);

/* Sets input and axis of split, for its ranks, to those that need the least memory, work and
 * exchange per rank. Errors: HEALCL_REFUSED if no input can be split; HEALCL_USAGE for 0 ranks;
 * HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_choose_split(
    const struct healcl_transcript *transcript, struct healcl_split *split,
    struct healcl_error *error);

/* The elements of a whole tensor that a rank has: in each `period` of an axis, `size` from `start`
 * on. A period is the whole axis, unless an operation has joined it with another. */
struct healcl_part {
    uint32_t axis;
    int64_t start, size, period; /* period: 0 where it has the whole tensor */
};

/* The part of an input or result by its number; all are whole for a transcript that was not
 * split. */
struct healcl_part healcl_transcript_input_part(const struct healcl_transcript *transcript,
                                                size_t input);
struct healcl_part healcl_transcript_result_part(const struct healcl_transcript *transcript,
                                                 size_t result);

/* Costs of running a part. */
struct healcl_split_facts {
    uint64_t tensor_bytes;   /* most that tensors take at one time */
    size_t exchanges;        /* tensors that ranks add up */
    uint64_t exchange_bytes; /* of these tensors */
};

struct healcl_split_facts healcl_transcript_split_facts(const struct healcl_transcript *transcript);

/* A tensor of which each rank has a summand, and its moduli: element i of data is in [0, q) with q
 * = moduli[i / each % modulus_count]. */
struct healcl_exchange {
    size_t segment; /* that has ended; counted from 0 */
    size_t number;  /* among those of the segment */
    enum healcl_dtype dtype;
    size_t elements;
    const int64_t *moduli; /* lives during the call */
    size_t modulus_count, each;
};

/* Adds the elements [first, first + count) of another summand, at the beginning of others, to those
 * of sum, which is the whole tensor. Both are in [0, q) before, and sum after. */
void healcl_exchange_add(const struct healcl_exchange *exchange, size_t first, size_t count,
                         void *sum, const void *others);

/* ---------------------------------------------------------------- devices */

struct healcl_device;

/*
 * Opens one OpenCL device. selector: "0:1" (platform and device index), part of a platform's name
 * or version ("pocl"), else part of a device's name, "cpu", "gpu" or "acc". NULL or "":
 * HEALCL_DEVICE of the environment, else the best device (GPU before accelerator before CPU). The
 * host reference, "reference" in programs, is not a device: pass NULL for it.
 * A device runs a self-test of its arithmetic when it is first opened with its driver. The first
 * device that a process opens or lists loads OpenCL: docs/EMBEDDING.md.
 * Errors: HEALCL_USAGE if nothing, or nothing usable, matches, and for "reference";
 * HEALCL_DEVICE, also if the self-test fails.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_device_open(const char *selector,
                                                        struct healcl_device **device,
                                                        struct healcl_error *error);
void healcl_device_close(struct healcl_device *device);

/* The caller's own context, queue, memory and log, any of them; the rest is NULL. */
struct healcl_device_options {
    const char *selector; /* as healcl_device_open; with a context, where device is NULL */
    /* The caller's cl_context, a cl_device_id in it, and a command queue of both; they are
     * retained. healcl_run, sessions and queues of this device then enqueue on that queue, in order
     * with the caller's own commands. Commands of several threads in it take turns. Without
     * CL_QUEUE_PROFILING_ENABLE the host's clock times operations. */
    void *context;
    void *device;
    void *queue; /* a cl_command_queue */
    /* Called with one line about what the library does: programs built, or memory freed because
     * there was too little. It is called from any thread that uses the device; line lives only
     * during the call. */
    void (*log)(void *context, const char *line);
    void *log_context;
    /* Allocation of device memory: allocate returns a buffer of at least bytes (CL_MEM_READ_WRITE),
     * or NULL if there is no room. release gets it back once no command uses it. They are called
     * from any thread that uses the device. Both NULL: clCreateBuffer and clReleaseMemObject. */
    void *(*allocate)(void *context, size_t bytes); /* a cl_mem */
    void (*release)(void *context, void *memory);
    void *memory_context;
    /* A package that `healcl compile` made for the device, or NULL. All programs then come from it
     * and none is built, so a device without a compiler can be opened too. */
    const char *package;
    /* Refuses steps that the device cannot run because its compiler builds no kernel for them.
     * Otherwise the host runs them, slowly, with transfers before and after. Reports, struct
     * healcl_session_facts, healcl_queue_fallbacks and log show that. */
    bool no_fallback;
};

/* As healcl_device_open. options may be NULL. Further errors: HEALCL_USAGE if a package cannot be
 * read; HEALCL_REFUSED if it is damaged, or for another device, driver or healcl. */
HEALCL_MUST_CHECK enum healcl_status healcl_device_open_with(
    const struct healcl_device_options *options, struct healcl_device **device,
    struct healcl_error *error);

enum healcl_device_type {
    HEALCL_DEVICE_OTHER,
    HEALCL_DEVICE_CPU,
    HEALCL_DEVICE_GPU,
    HEALCL_DEVICE_ACCELERATOR,
};

/* A device of the machine. */
struct healcl_device_info {
    char selector[24]; /* "0:1", for healcl_device_open */
    char name[256], vendor[128], platform[128], driver[128], version[128];
    enum healcl_device_type type;
    uint32_t compute_units;
    uint64_t memory_bytes; /* a hint: drivers' values are unreliable */
    bool shares_memory;    /* with the host */
    char unusable[160];    /* why it cannot be used: "it has no compiler"; "" where it can */
};

/* Lists all devices of all platforms, usable or not. Free *list with healcl_device_list_free. An
 * empty list is no error. Errors: HEALCL_DEVICE if OpenCL cannot be loaded, or no platform can list
 * its own devices; HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_device_list(struct healcl_device_info **list,
                                                        size_t *count, struct healcl_error *error);
void healcl_device_list_free(struct healcl_device_info *list);

/* Describes an opened device. */
struct healcl_device_info healcl_device_describe(const struct healcl_device *device);

/* ---------------------------------------------------------------- runs */

/* The purpose of a run's repetition. */
enum healcl_phase {
    HEALCL_WARMING_UP, /* the device compiles kernels, and runs each for the first time */
    HEALCL_MEASURING,  /* the times of segments */
    HEALCL_PROFILING,  /* the times of operations */
};

/* Functions that a run calls while it works; all may be NULL. The strings live only during the
 * call. */
struct healcl_observer {
    void *context;
    /* Called before each repetition: the number-th, from 1, of count of this phase. */
    void (*repetition)(void *context, enum healcl_phase phase, uint32_t number, uint32_t count);
    /* One line about a result that differs, or a warning. */
    void (*difference)(void *context, const char *line);
    void (*warning)(void *context, const char *line);
    /* Called before each segment, and within long ones. */
    void (*progress)(void *context, size_t segment, size_t segment_count, const char *name,
                     size_t step, size_t step_count);
    /* Called before each operation, and now and then within one that the host computes: true ends
     * the run there, with HEALCL_CANCELLED. */
    bool (*cancelled)(void *context);
};

/* The caller's elements instead of an input's of the file: see healcl_session_bind. */
struct healcl_input {
    size_t input; /* its number */
    const void *data;
};

struct healcl_run_options {
    bool no_verify; /* run, download, compare nothing */
    bool profile;   /* take the times of operations, on a device in further repetitions */
    /* Counts the first repetition, even if kernels ran in it for the first time. Otherwise such a
     * repetition warms up the device, and the report has no times of it. */
    bool no_warm_up;
    uint32_t repeat;                   /* 0 and 1: once */
    const char *dump_dir;              /* write results as .npy files there, or NULL */
    const struct healcl_input *inputs; /* input_count of them, read in each repetition */
    size_t input_count;
    struct healcl_observer observer;
    /* Most bytes to allocate on the device, 0 for no limit. Tensors that are not needed soon make
     * room for others: docs/MEMORY.md. */
    uint64_t device_memory_bytes;
};

enum healcl_verdict {
    HEALCL_NOTHING_TO_VERIFY,
    HEALCL_VERIFIED,
    HEALCL_DIFFERS,
};

struct healcl_operation_profile {
    const char *name;     /* of the operation, as in docs/OPS.md */
    uint64_t count;       /* how often it ran in one repetition */
    uint64_t nanoseconds; /* the median repetition's; 0 without profile */
    /* Steps of it that the host ran in one repetition because the device could not; the time that
     * they took with their transfers; and the reason of the first one, or NULL. A step of several
     * operations counts for each, its time for the last. */
    uint64_t fallbacks, fallback_nanoseconds;
    const char *fallback_reason;
};

struct healcl_segment_profile {
    const char *name; /* "" for operations outside of any segment */
    uint64_t operations;
    uint64_t bytes_up, bytes_down;
    uint64_t results, results_compared, results_different; /* of those of the whole */
    uint64_t nanoseconds; /* host's clock, from first enqueue to last result, median */
    /* With profile, medians of the repetitions that timed operations: the same time, and the parts
     * of it in which the device did nothing between two kernels. It had no command, or the driver
     * had not begun the one it had. Both parts are 0 with operations_by_host. */
    uint64_t profiled_nanoseconds;
    uint64_t without_command_nanoseconds, not_begun_nanoseconds;
    struct healcl_operation_profile *profiles;
    size_t profile_count;
};

/* A kernel of a manifest that ran, for the manifest's own operation or instead of a built-in
 * kernel. */
struct healcl_manifest_kernel {
    const char *name;     /* of the alternative, "key_switch[STAGES=3]" */
    const char *what;     /* its operation, or the built-in kind of step that it replaces: "ntt" */
    const char *manifest; /* its file, without the folder */
    bool replaces;
    uint64_t steps; /* that it ran, in one repetition */
    bool tuned;     /* healcl tune has chosen this alternative for the device */
};

struct healcl_report {
    enum healcl_verdict verdict;
    uint64_t results, results_compared, results_different;
    uint64_t dropped_digits; /* values with gadget digits beyond g_exp, in one repetition */
    uint64_t
        fallbacks; /* steps that the device could not run, and the host did, in one repetition */
    uint64_t device_bytes_peak; /* most bytes allocated on the device at one time */
    /* Bytes of it that are allocated for tensors, without scratch memory and derived tables; and
     * the most bytes that tensors have at one time. Both are 0 on the reference, and with limited
     * device memory. */
    uint64_t tensor_bytes_allocated, tensor_bytes_live;
    uint64_t
        compile_nanoseconds;  /* building programs and making kernels, in no repetition's time */
    uint64_t programs_built;  /* of kernels, from their source */
    uint64_t programs_loaded; /* of kernels, from binaries that an earlier process cached */
    uint64_t first_launches;  /* of kernels that had not run on the device's context before */
    /* With profile, and after a warm-up: how long the driver took until it began these launches, as
     * some compile a kernel only then; with operations_by_host until they had ended. */
    uint64_t first_launch_nanoseconds;
    uint64_t
        warm_up_nanoseconds; /* the repetition before those that count; 0 where there was none */
    uint64_t verify_nanoseconds; /* comparing results and writing them, in all repetitions */
    /* run_count times of a repetition with warm kernels, without verifying and building */
    uint64_t *run_nanoseconds;
    size_t run_count;
    /* With profile, for each of these times: decoding uploads, and the device's kernels or the
     * host's steps, all by the host's clock. The rest is transfers. The host waits for the device
     * between transfers and kernels of a segment. NULL without profile. */
    uint64_t *decode_nanoseconds, *compute_nanoseconds;
    /* Times of the further repetitions, after those, in which a device timed operations: 5, or
     * run_count if that is less. There are none on the reference. */
    uint64_t *profiled_nanoseconds;
    size_t profiled_count;
    /* Whether the host's clock times operations: on the reference, and on a device whose driver
     * takes no times. Each command was then waited for, and its time includes that. */
    bool operations_by_host;
    struct healcl_segment_profile *segments;
    size_t segment_count;
    struct healcl_manifest_kernel *manifest_kernels;
    size_t manifest_kernel_count;
    /* With limited device memory, for one repetition: the limit, the most bytes of tensors on the
     * device at one time, the bytes moved to make room, and the time that took. */
    uint64_t device_memory_limit, tensor_bytes_peak;
    uint64_t bytes_spilled, bytes_brought_back; /* to the host, from the host */
    uint64_t bytes_streamed_again;              /* uploads after the first one of each */
    uint64_t spill_nanoseconds;
};

/*
 * Runs a transcript on a device, or with device NULL on the host reference. Compares every result
 * that has an expected tensor.
 * Returns HEALCL_OK with a report even if results differ (see verdict). options may be NULL.
 * Errors: HEALCL_REFUSED for what only data reveal (an index out of range, a zero modulus in a
 * tensor), for a file that has changed, and for tensors larger than the device can hold or steps
 * larger than device_memory_bytes; HEALCL_DEVICE; HEALCL_NO_MEMORY; HEALCL_CANCELLED; HEALCL_USAGE
 * if dump_dir cannot be written, or for a part with exchanges, which only sessions run.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_run(const struct healcl_transcript *transcript,
                                                struct healcl_device *device,
                                                const struct healcl_run_options *options,
                                                struct healcl_report **report,
                                                struct healcl_error *error);
void healcl_report_free(struct healcl_report *report);

/* ---------------------------------------------------------------- sessions */

/*
 * A session is a planned transcript on a device that runs again and again, with the caller's inputs
 * instead of the file's:
 *
 *     healcl_session_open(transcript, device, NULL, &session, &error);
 *     for (each request) {
 *         healcl_session_bind(session, input, image, &error);
 *         healcl_session_run(session, &error);
 *         healcl_session_read(session, result, answer, sizeof answer, &error);
 *     }
 *     healcl_session_close(session);
 *
 * Uploads stay on the device from run to run: keys, tables and weights. Only bound inputs are
 * uploaded again, and those that an operation writes to.
 *
 * Threads: one at a time for each session, but any thread may cancel. Several sessions may run at
 * the same time, on one device too; each has its own queues and kernels there. On devices whose
 * queues cannot work at the same time they take turns, a segment each. A run that was started in
 * the background runs in a thread of the session. Until it is waited for, functions other than
 * ..._poll, ..._wait and ..._cancel return HEALCL_USAGE.
 */
struct healcl_session;

struct healcl_session_options {
    bool keep_nothing; /* upload every input in every run; healcl_session_keep changes it for one */
    /* The share of the time, from 0, none, to 1, in which steps that the device has run are
     * repeated on the host reference, and compared: see healcl_session_audit. */
    double audit_share;
    uint64_t audit_seed; /* chooses the audited steps: the same for the same requests and times */
    /* Turns data, this rank's summand of a tensor, packed, into the sum of all ranks'. All ranks
     * call it for the same tensors, in one order, from the thread that runs the session. A status
     * other than HEALCL_OK ends the run. NULL: a part with exchanges cannot be opened. */
    enum healcl_status (*exchange)(void *context, const struct healcl_exchange *exchange,
                                   void *data, struct healcl_error *error);
    void *exchange_context;
};

/*
 * Opens a session; plans nothing anew, and runs nothing. device: NULL for the host reference.
 * transcript and, until this returns, device belong to the caller. Both may be closed before the
 * session, which retains what it needs of them. options may be NULL. Errors: HEALCL_USAGE for an
 * audit of the reference, a share outside [0, 1], or exchanges without a function for them;
 * HEALCL_REFUSED for tensors larger than the device can hold; HEALCL_DEVICE; HEALCL_NO_MEMORY.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_session_open(
    const struct healcl_transcript *transcript, struct healcl_device *device,
    const struct healcl_session_options *options, struct healcl_session **session,
    struct healcl_error *error);
/* Waits for a run in the background. */
void healcl_session_close(struct healcl_session *session);

/*
 * Takes an input's elements from data, as many bytes as healcl_transcript_inputs says, packed and
 * in C order, from the next run on; NULL: from the file again. Each run reads them; they belong to
 * the caller. Errors: HEALCL_USAGE if there is no such input.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_session_bind(struct healcl_session *session,
                                                         size_t input, const void *data,
                                                         struct healcl_error *error);

/* Sets whether an input that is not bound stays on the device from run to run. An input that an
 * operation writes to never does. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_keep(struct healcl_session *session,
                                                         size_t input, bool keep,
                                                         struct healcl_error *error);

/* Runs all segments. Errors: as healcl_run; HEALCL_REFUSED for an input without data;
 * HEALCL_DIFFERENT if an audited step differs: no result of the run counts. After one of these
 * errors no segment has results, and the next run must begin with the first one. HEALCL_USAGE
 * changes nothing. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_run(struct healcl_session *session,
                                                        struct healcl_error *error);

/*
 * Runs count segments from number first on, with the results of those before them. Segments that
 * ran already can run again, as long as what they read still exists. Errors: HEALCL_USAGE if a
 * later segment has written to a tensor of an earlier one, or freed it, or if those before first
 * have not run.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_session_run_segments(struct healcl_session *session,
                                                                 size_t first, size_t count,
                                                                 struct healcl_error *error);

/* As healcl_session_run_segments, in the background. done, which may be NULL, is called there once
 * the run has ended. It may read results, and must call no other function of the session. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_start(
    struct healcl_session *session, size_t first, size_t count,
    void (*done)(void *context, enum healcl_status status), void *context,
    struct healcl_error *error);

/* Whether nothing runs in the background. What was started must still be waited for. */
bool healcl_session_poll(const struct healcl_session *session);

/* Waits for what was started, and returns its status. HEALCL_USAGE if nothing was started. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_wait(struct healcl_session *session,
                                                         struct healcl_error *error);

/* Ends the current run, if any, before its next operation, or within one that the host computes,
 * with HEALCL_CANCELLED. */
void healcl_session_cancel(struct healcl_session *session);

/* Writes a result to the caller's memory, packed and in C order, as soon as it is there, in each
 * run from the next one on; NULL: to the session's own again. memory has room for as many bytes as
 * healcl_transcript_results says; after a failed run its contents are undefined. A result that is
 * in the session's own memory stays there until the next run. Memory that this call replaces
 * belongs to the caller alone, who may free it; the session no longer has that result. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_receive(struct healcl_session *session,
                                                            size_t result, void *memory,
                                                            struct healcl_error *error);

/* Returns the elements of a result, packed and in C order: where healcl_session_receive said before
 * the run, or in memory of the session's, until its next run. HEALCL_USAGE if there are none: its
 * segment has not run, the last run failed, or healcl_session_receive has released them. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_map(struct healcl_session *session,
                                                        size_t result, const void **data,
                                                        struct healcl_error *error);

/* Copies the elements of a result. bytes: exactly their size. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_read(struct healcl_session *session,
                                                         size_t result, void *memory, size_t bytes,
                                                         struct healcl_error *error);

/* Compares a result with the tensor that the transcript expects: *different elements differ, all if
 * the shape does. HEALCL_USAGE if it expects none; HEALCL_REFUSED if it differs from a file that
 * has changed. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_compare(struct healcl_session *session,
                                                            size_t result, uint64_t *different,
                                                            struct healcl_error *error);

/* Facts about the last run, and the session. */
struct healcl_session_facts {
    uint64_t runs;                 /* that have ended well */
    uint64_t nanoseconds;          /* of the last one, from its beginning to its last result */
    uint64_t bytes_uploaded;       /* of inputs, in the last run */
    uint64_t fallbacks;            /* steps that the device could not run, and the host did */
    uint64_t dropped_digits;       /* values with gadget digits beyond g_exp */
    uint64_t device_bytes;         /* allocated on the device now, by this session */
    uint64_t device_bytes_peak;    /* most of them at one time, so far */
    uint64_t exchange_nanoseconds; /* of nanoseconds, for exchanges */
};

/* Returns the facts; all 0 if the session is NULL, or while it runs in the background. */
struct healcl_session_facts healcl_session_facts(const struct healcl_session *session);

/* ---- audits ---- */

/* A kernel that runs steps of the transcript on the device. */
struct healcl_audit_kernel {
    const char *name;     /* "modmul, vectors, int64"; or a manifest's */
    size_t steps;         /* of the plan that it runs, as far as they can be audited */
    size_t steps_audited; /* of those, once or more, whole or in part */
    uint64_t audits;
    uint64_t elements; /* of outputs that were compared */
};

/* A step whose output differs from the host reference's for the same inputs. */
struct healcl_audit_difference {
    size_t entry;          /* of the transcript */
    const char *operation; /* as written there */
    size_t step;           /* of the plan */
    const char *kernel;
    uint64_t element;   /* of the output, as the kernel sees it, the first one found, in C order */
    char index[160];    /* the same as "[1, 0]" */
    int64_t actual;     /* there */
    int64_t expected;   /* by the reference */
    uint64_t different; /* elements of those that were compared */
    uint64_t compared;
};

struct healcl_audit_facts {
    size_t steps;             /* of the plan that can be audited */
    size_t steps_audited;     /* of those, once or more, whole or in part */
    uint64_t steps_left_out;  /* that no audit can do again: those of vendors' kernels */
    uint64_t audits;          /* of steps */
    uint64_t elements;        /* compared */
    uint64_t nanoseconds;     /* that audits took of the runs' time */
    uint64_t run_nanoseconds; /* of all runs, audits included */
    size_t kernel_count;
    const struct healcl_audit_kernel *kernels; /* the session's */
    /* The difference that ended the last run, or NULL; until the next run. */
    const struct healcl_audit_difference *difference;
};

/* Returns the coverage of audits in all runs. All 0 if there are none, the session is NULL, or
 * while it runs in the background. */
struct healcl_audit_facts healcl_session_audit(const struct healcl_session *session);

/* ---------------------------------------------------------------- requests together */

/*
 * Runs requests in batches: a session on a widened transcript (healcl_transcript_widen), and one
 * for single requests. Keys, weights and tables are read once for a batch, and launches are shared.
 *
 *     struct healcl_batcher_options options = {.batch = 8, .inputs = &input, .input_count = 1};
 *     healcl_batcher_open(transcript, device, &options, &batcher, &error);
 *     requests[i] = (struct healcl_request){.inputs = &image, .results = &answer};
 *     healcl_batcher_run(batcher, requests, count, &error);
 *
 * Threads: one at a time for each batcher, as for a session.
 */
struct healcl_batcher;

struct healcl_batcher_options {
    size_t batch; /* requests together: at most, and at least 1 */
    /* Numbers of the inputs that come with each request (healcl_transcript_inputs). */
    const size_t *inputs;
    size_t input_count;
    /* Most bytes that a batch's tensors may take. 0: what the device reports. On the host, and on
     * devices that share its memory, 0 means the transcript's limits. */
    uint64_t memory_bytes;
};

/*
 * Opens a batcher. If `batch` requests do not fit in memory, it takes the largest number that does:
 * see healcl_batcher_facts. device: NULL for the host reference. transcript, device and options
 * belong to the caller, and may go before the batcher. Errors: as healcl_transcript_widen and
 * healcl_session_open; HEALCL_REFUSED if not even one request fits.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_batcher_open(
    const struct healcl_transcript *transcript, struct healcl_device *device,
    const struct healcl_batcher_options *options, struct healcl_batcher **batcher,
    struct healcl_error *error);
void healcl_batcher_close(struct healcl_batcher *batcher);

struct healcl_request {
    /* The caller's elements of each input of the options, as healcl_session_bind takes them. */
    const void *const *inputs;
    /* The destination of each result of the transcript, by number: room for as many bytes as
     * healcl_transcript_results says; NULL: it is not wanted. All NULL: none is. */
    void *const *results;
    /* The outcome: HEALCL_OK, or HEALCL_REFUSED if its own data make it refuse. The caller clears
     * error. */
    enum healcl_status status;
    struct healcl_error error;
    uint64_t nanoseconds; /* that it took, with the others of its batch */
};

/*
 * Runs requests in their order, batch after batch. A last batch that is less than half full runs
 * one by one. So do the requests of a batch that data make refuse: the one at fault fails alone.
 * Errors: as healcl_session_run, except for that; requests that have not run then have no status.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_batcher_run(struct healcl_batcher *batcher,
                                                        struct healcl_request *requests,
                                                        size_t count, struct healcl_error *error);

struct healcl_batcher_facts {
    size_t batch;          /* requests together at most: what fits */
    uint64_t memory_bytes; /* most that the tensors of a batch take at one time */
    uint64_t runs;         /* of batches and of single requests, so far */
    uint64_t requests_together, requests_alone; /* so far */
    uint64_t bytes_uploaded,
        fallbacks;         /* by the last run, as struct healcl_session_facts has them */
    uint64_t device_bytes; /* allocated on the device now */
};

/* Returns the facts; all 0 if the batcher is NULL. */
struct healcl_batcher_facts healcl_batcher_facts(const struct healcl_batcher *batcher);

/* ---------------------------------------------------------------- operations by call */

/*
 * An interface for other runtimes: tensors on a device, and every operation of docs/OPS.md on them.
 *
 *     healcl_queue_open(device, NULL, &queue, &error);
 *     healcl_tensor_create(queue, HEALCL_INT64, 2, shape, a_data, &a, &error);
 *     healcl_tensor_create(queue, HEALCL_INT64, 2, shape, NULL, &out, &error);
 *     healcl_call(queue, "modmul", 4, (struct healcl_argument[]){healcl_tensor_argument(a),
 *                 healcl_tensor_argument(a), healcl_int_argument(97),
 *                 healcl_tensor_argument(out)}, NULL, &error);
 *     healcl_tensor_read(out, answer, sizeof answer, &error);
 *
 * A call is checked by the same code as an entry of a transcript, and enqueued without waiting.
 * Data errors (an index out of range) are errors of the next function that waits, and name the
 * call: "call 17 (take_along_axis): argument 'idx': ...". Calls of a queue are counted from 0.
 *
 * Threads: one at a time for a queue and its tensors, but any may release a tensor or cancel.
 * Several queues may work at the same time, as sessions do.
 */
struct healcl_queue;
struct healcl_tensor;

/* Opens a queue. device: NULL for the host reference; the caller's until this returns. limits may
 * be NULL. Errors: HEALCL_DEVICE, HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_queue_open(struct healcl_device *device,
                                                       const struct healcl_limits *limits,
                                                       struct healcl_queue **queue,
                                                       struct healcl_error *error);
struct healcl_queue_options {
    const struct healcl_limits *limits; /* or NULL */
    /* Waits for each call: data errors are errors of the call itself, not of the next function that
     * waits. */
    bool synchronous;
    /* Called now and then, in the thread of a call or wait that goes on: true ends it, as
     * healcl_queue_cancel does. NULL: nothing is asked. */
    bool (*cancelled)(void *context);
    void *cancelled_context;
};

/* As healcl_queue_open, with options, which may be NULL. */
HEALCL_MUST_CHECK enum healcl_status healcl_queue_open_with(
    struct healcl_device *device, const struct healcl_queue_options *options,
    struct healcl_queue **queue, struct healcl_error *error);

/* Frees all that its tensors have on the device. Handles of remaining tensors must still be
 * released, at any time. Until then they hold only their own memory, and can be described. */
void healcl_queue_close(struct healcl_queue *queue);

/* Waits for all calls. Errors: HEALCL_REFUSED for data errors; HEALCL_DEVICE; HEALCL_CANCELLED,
 * after which calls go on, and nothing is lost. After another error the contents of tensors that
 * the call and later ones write are undefined. */
HEALCL_MUST_CHECK enum healcl_status healcl_queue_wait(struct healcl_queue *queue,
                                                       struct healcl_error *error);

/* Whether healcl_queue_wait would return at once: all calls have ended, or the queue is NULL. */
bool healcl_queue_poll(struct healcl_queue *queue);

/* Ends the function of the queue or of its tensors that goes on, if any, with HEALCL_CANCELLED;
 * from any thread. Enqueued calls go on, and can be waited for later. A call that had to wait for
 * others is not made. One that the host computes ends early, and leaves what it writes undefined.
 * The transfer of a read or write that has begun ends first. */
void healcl_queue_cancel(struct healcl_queue *queue);

/* The number of steps so far that the host ran because the device could not; 0 for a NULL queue. */
uint64_t healcl_queue_fallbacks(const struct healcl_queue *queue);

/* Creates a tensor in C order, with a copy of data, or with zeros if data is NULL. The caller
 * releases it. Errors: HEALCL_REFUSED for a bad shape or beyond the limits; HEALCL_NO_MEMORY;
 * HEALCL_DEVICE. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_create(struct healcl_queue *queue,
                                                          enum healcl_dtype dtype, uint32_t rank,
                                                          const int64_t *shape, const void *data,
                                                          struct healcl_tensor **tensor,
                                                          struct healcl_error *error);

/* Releases a handle, which may be NULL: from any thread, also during another thread's call of the
 * queue, and after the queue was closed. Memory that no handle views is reused from the queue's
 * next call on; enqueued calls still have it. */
void healcl_tensor_release(struct healcl_tensor *tensor);

/* Describes a tensor: entry, segment and has_data are 0, name is ""; shape lives as long as the
 * handle. */
struct healcl_tensor_info healcl_tensor_describe(const struct healcl_tensor *tensor);

/* Waits, and copies the elements, packed and in C order; bytes: exactly their size. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_read(struct healcl_tensor *tensor, void *memory,
                                                        size_t bytes, struct healcl_error *error);

/* The layout of a tensor in its storage: element [i, j, ...] is the storage's element offset + i *
 * strides[0] + j * strides[1] + ... */
struct healcl_tensor_layout {
    uint32_t rank;
    const int64_t *shape, *strides; /* rank of each, in elements; they live as long as the handle */
    int64_t offset;                 /* in elements */
    int64_t storage_elements;
    bool contiguous; /* its elements lie one behind the other, in C order */
};

/* Returns the layout; all 0 for a NULL tensor. */
struct healcl_tensor_layout healcl_tensor_layout(const struct healcl_tensor *tensor);

/* Whether both view the same storage: a write to one may be read from the other. */
bool healcl_tensor_shares_storage(const struct healcl_tensor *a, const struct healcl_tensor *b);

/* Copies data, packed and in C order, into the elements of a tensor, which may be any view, in the
 * order of the calls. bytes: exactly their size. data may go afterwards. Waits for the calls before
 * if a contiguous tensor has more than 64 KiB. Errors: HEALCL_USAGE for another number of bytes, or
 * while the tensor is mapped; HEALCL_REFUSED if elements of it share memory (expand). */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_write(struct healcl_tensor *tensor,
                                                         const void *data, size_t bytes,
                                                         struct healcl_error *error);

/* Copies elements to a tensor of the same queue, shape and dtype, without waiting. Both may view
 * one storage, and overlap: the result is as if all were read first. It counts as a call, "copy".
 * Errors: as healcl_call. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_copy(const struct healcl_tensor *from,
                                                        struct healcl_tensor *to,
                                                        struct healcl_error *error);

/* Waits for all calls, and gives the elements of a contiguous tensor for reading and writing. Until
 * healcl_tensor_unmap, or the release of the handle, no other function takes a tensor of the same
 * storage: HEALCL_USAGE. Errors: HEALCL_REFUSED if the tensor is not contiguous; as
 * healcl_queue_wait. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_map(struct healcl_tensor *tensor, void **data,
                                                       struct healcl_error *error);
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_unmap(struct healcl_tensor *tensor,
                                                         struct healcl_error *error);

/*
 * Returns the cl_mem of a tensor's storage, and the offset of the storage's element 0 in it. The
 * library owns it; it stays the tensor's as long as a handle views the storage, and may be a
 * sub-buffer. The caller's own commands are in order with calls if they use the queue in struct
 * healcl_device_options. On another queue they come after healcl_queue_wait, and must end before
 * the next call. Errors: HEALCL_USAGE on the host reference.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_memory(struct healcl_tensor *tensor,
                                                          void **memory, size_t *offset_bytes,
                                                          struct healcl_error *error);

/* Makes a contiguous tensor over the beginning of the caller's cl_mem, which is retained until
 * no handle views it. The caller's own commands follow the rules above. The memory of two
 * storages must not overlap. Errors: HEALCL_REFUSED for memory of another context, that is too
 * small, or that allows only reading or writing; HEALCL_USAGE on the host reference; as
 * healcl_tensor_create. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_adopt(struct healcl_queue *queue,
                                                         enum healcl_dtype dtype, uint32_t rank,
                                                         const int64_t *shape, void *memory,
                                                         struct healcl_tensor **tensor,
                                                         struct healcl_error *error);

enum healcl_index_kind {
    HEALCL_INDEX_INT,
    HEALCL_INDEX_SLICE,
    HEALCL_INDEX_ELLIPSIS,
};

/* An item of the index of get_slice, as Python's: an integer, a slice, or "...". */
struct healcl_index {
    enum healcl_index_kind kind;
    int64_t value; /* of an integer */
    bool has_start, has_stop, has_step;
    int64_t start, stop, step;
};

enum healcl_argument_kind {
    HEALCL_ARGUMENT_TENSOR,
    HEALCL_ARGUMENT_INT, /* integers, axes, moduli, flags */
    HEALCL_ARGUMENT_NONE,
    HEALCL_ARGUMENT_SHAPE,
    HEALCL_ARGUMENT_INDEX,
    HEALCL_ARGUMENT_DTYPE,
};

/* An argument of an operation: docs/OPS.md has the kinds. */
struct healcl_argument {
    enum healcl_argument_kind kind;
    union {
        const struct healcl_tensor *tensor;
        int64_t integer;
        struct {
            uint32_t rank;
            const int64_t *sizes;
        } shape;
        struct {
            uint32_t count;
            const struct healcl_index *items;
        } index;
        enum healcl_dtype dtype;
    } as;
};

static inline struct healcl_argument healcl_tensor_argument(const struct healcl_tensor *tensor)
{
    struct healcl_argument argument = {HEALCL_ARGUMENT_TENSOR, {0}};
    argument.as.tensor = tensor;
    return argument;
}

static inline struct healcl_argument healcl_int_argument(int64_t integer)
{
    struct healcl_argument argument = {HEALCL_ARGUMENT_INT, {0}};
    argument.as.integer = integer;
    return argument;
}

static inline struct healcl_argument healcl_no_argument(void)
{
    struct healcl_argument argument = {HEALCL_ARGUMENT_NONE, {0}};
    return argument;
}

static inline struct healcl_argument healcl_shape_argument(uint32_t rank, const int64_t *sizes)
{
    struct healcl_argument argument = {HEALCL_ARGUMENT_SHAPE, {0}};
    argument.as.shape.rank = rank;
    argument.as.shape.sizes = sizes;
    return argument;
}

static inline struct healcl_argument healcl_index_argument(uint32_t count,
                                                           const struct healcl_index *items)
{
    struct healcl_argument argument = {HEALCL_ARGUMENT_INDEX, {0}};
    argument.as.index.count = count;
    argument.as.index.items = items;
    return argument;
}

static inline struct healcl_argument healcl_dtype_argument(enum healcl_dtype dtype)
{
    struct healcl_argument argument = {HEALCL_ARGUMENT_DTYPE, {0}};
    argument.as.dtype = dtype;
    return argument;
}

/*
 * Calls an operation by any of its names in docs/OPS.md. *result becomes a handle of the tensor
 * that it makes or views, which the caller releases, or NULL if there is none; for an operation
 * with an `out` it views that. healcl_no_argument() for the `out` of a built-in operation makes a
 * new tensor, of the shape and dtype that the others imply; modmul_axis_sum adds to zeros then.
 * result may be NULL. host_to_device, device_to_host and free_device_tensor are refused; they have
 * their own functions. Errors: HEALCL_REFUSED for arguments that break the operation's rules, with
 * nothing enqueued; HEALCL_USAGE for a tensor of another queue; HEALCL_DEVICE; HEALCL_NO_MEMORY.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_call(struct healcl_queue *queue, const char *operation,
                                                 size_t count,
                                                 const struct healcl_argument *arguments,
                                                 struct healcl_tensor **result,
                                                 struct healcl_error *error);

/* Calls an operation by its number in healcl_operation_describe, among the operations of the
 * queue's limits. HEALCL_USAGE if there is none. Otherwise as healcl_call. */
HEALCL_MUST_CHECK enum healcl_status healcl_call_number(struct healcl_queue *queue, size_t number,
                                                        size_t count,
                                                        const struct healcl_argument *arguments,
                                                        struct healcl_tensor **result,
                                                        struct healcl_error *error);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
