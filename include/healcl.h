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
#if defined(__clang__) /* clang applies this to types, gcc only to functions */
#define HEALCL_MUST_CHECK_TYPE HEALCL_MUST_CHECK
#else
#define HEALCL_MUST_CHECK_TYPE
#endif

/* ---------------------------------------------------------------- errors */

enum HEALCL_MUST_CHECK_TYPE healcl_status {
    HEALCL_OK,
    HEALCL_DIFFERENT, /* a result differs from the one the transcript expects */
    HEALCL_USAGE,     /* a bad option, an unknown device, a file that cannot be read or written */
    HEALCL_REFUSED,   /* the transcript is malformed, or its data break a rule of an operation */
    HEALCL_DEVICE,    /* the device or OpenCL failed */
    HEALCL_NO_MEMORY, /* the host ran out of memory */
    HEALCL_CANCELLED, /* the caller cancelled the run or call */
};

/* The cause of an error, for programs; the message is for people. Several causes share a status. */
enum healcl_cause {
    HEALCL_CAUSE_NONE,     /* no other cause, as for HEALCL_DIFFERENT and HEALCL_CANCELLED */
    HEALCL_CAUSE_ARGUMENT, /* a value, axis, count or kind of argument that is not allowed */
    HEALCL_CAUSE_SHAPE,
    HEALCL_CAUSE_DTYPE,
    HEALCL_CAUSE_DATA,      /* a fault of the elements: an index out of range, a modulus of 0 */
    HEALCL_CAUSE_OPERATION, /* no such operation */
    HEALCL_CAUSE_LIMIT,     /* a limit on memory or work, or the capacity of a device */
    HEALCL_CAUSE_FORMAT,    /* a transcript, manifest or package that is malformed */
    HEALCL_CAUSE_FILE,      /* a file that cannot be read or written */
    HEALCL_CAUSE_STATE, /* a function called at the wrong time: nothing runs, or no result exists */
    HEALCL_CAUSE_DEVICE,
    HEALCL_CAUSE_MEMORY,      /* the host ran out of memory */
    HEALCL_CAUSE_UNSUPPORTED, /* the device cannot: a kernel, a program, a capability is missing */
};

struct healcl_error {
    enum healcl_status status;
    enum healcl_cause cause;
    int64_t entry;     /* entry of the transcript or number of the queue's call; -1: none */
    int64_t operation; /* number for healcl_operation_describe; -1: none */
    int32_t argument;  /* number of the argument in the called form, from 0; -1: none */
    int opencl_code;   /* the cl_int that caused HEALCL_DEVICE, else 0 */
    const char *file;  /* the place in healcl's source that detected the error */
    int line;
    char message[640]; /* one line, no full stop: "entry 17 (_modmul_ttt): argument 'b': ..." */
    /* The log of a failed kernel build, several lines, or NULL. The error owns it. */
    char *detail;
};

/* Frees the memory that the error owns, and makes the error empty. */
void healcl_error_clear(struct healcl_error *error);

/* Returns a word for a status, e.g. "refused". */
const char *healcl_status_name(enum healcl_status status);

/* Returns a word for a cause, e.g. "shape". */
const char *healcl_cause_name(enum healcl_cause cause);

/* Returns the version, e.g. "0.1.0". */
const char *healcl_version(void);

/* ---------------------------------------------------------------- vendors' operations */

/* Operations and kernels from vendors' manifests: docs/VENDORS.md. */
struct healcl_operations;

/*
 * Reads all manifests, *.json, of a folder. If *handle is NULL, it becomes a new handle; otherwise
 * the manifests are added to the handle. Shared libraries that manifests name are loaded: native
 * code from the author of the folder. Threads may share a handle if nothing is added to it any
 * more. Transcripts and queues that were opened with it retain it. Close devices that ran its
 * operations before the last of these. Errors: HEALCL_REFUSED for a wrong manifest, with file, line
 * and field; HEALCL_USAGE for a file or folder that cannot be read; HEALCL_NO_MEMORY. After an
 * error, an existing handle may only be freed.
 *
 * Treat every manifest as code: its kernels run on the device, and on a CPU in this process.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_operations_load(const char *folder,
                                                            struct healcl_operations **handle,
                                                            struct healcl_error *error);
/* As healcl_operations_load, but manifests may name links out of the folder, and pass any options
 * to compilers. Such options can read or write any file. */
HEALCL_MUST_CHECK enum healcl_status healcl_operations_load_trusted(
    const char *folder, struct healcl_operations **handle, struct healcl_error *error);
void healcl_operations_free(struct healcl_operations *handle);

/* ---------------------------------------------------------------- operations at run time */

/* The kind of argument that a parameter takes. docs/OPS.md uses the same words. */
enum healcl_parameter_kind {
    HEALCL_PARAMETER_TENSOR,  /* a tensor that the operation reads */
    HEALCL_PARAMETER_INDICES, /* a tensor of indices, int32 or int64 */
    HEALCL_PARAMETER_OUT,     /* a tensor that the operation writes */
    HEALCL_PARAMETER_SCALAR,  /* an integer used as a value */
    HEALCL_PARAMETER_MODULUS, /* an integer in [1, 2^63) */
    HEALCL_PARAMETER_INT,     /* an integer used as an axis or a count */
    HEALCL_PARAMETER_FLAG,    /* 0 or 1 */
    HEALCL_PARAMETER_PERM, /* a tensor of indices; or nothing, if the operation does not use it */
    HEALCL_PARAMETER_HINT, /* a tensor, an integer or nothing; it is not read */
    HEALCL_PARAMETER_SHAPE,
    HEALCL_PARAMETER_INDEX,
    HEALCL_PARAMETER_DTYPE,
    HEALCL_PARAMETER_HOST, /* a tensor in a transcript's file: not available for calls */
    HEALCL_PARAMETER_NOTHING,
};

struct healcl_parameter_info {
    const char *name;
    enum healcl_parameter_kind kind;
    bool optional; /* the argument may be healcl_no_argument() */
};

/* A form of an operation: a name and a list of parameters. An operation may have several forms,
 * which differ in the number or kinds of their parameters. */
struct healcl_form_info {
    const char *name; /* calls may also put an underscore before it */
    uint32_t parameter_count;
    const struct healcl_parameter_info *parameters;
};

struct healcl_operation_info {
    const char *name, *family, *meaning; /* as in docs/OPS.md; form names are unique */
    uint32_t dtypes;       /* bit i: healcl_dtype i is allowed for tensors of values */
    const char *other;     /* the one parameter that may have another dtype, or NULL */
    uint32_t other_dtypes; /* bit i: it may also be of healcl_dtype i */
    uint32_t form_count;
    const struct healcl_form_info *forms;
    const char *manifest; /* file name of the manifest, without its folder; NULL: built in */
};

/* Describes an operation by its number. Built-in operations come first, then those of manifests.
 * operations: the manifests' operations, or NULL for the built-in ones only. Numbers of built-in
 * operations do not change within a version. Returns false after the last operation. Pointers in
 * info are valid as long as operations. Only a call shows which dtypes each parameter of a
 * manifest's operation may have. */
bool healcl_operation_describe(const struct healcl_operations *operations, size_t number,
                               struct healcl_operation_info *info);

/* ---------------------------------------------------------------- transcripts */

struct healcl_transcript;

/* The order of the integers after the tensor of `expand`: docs/HEAL-SDK.md. */
enum healcl_expand {
    /* The order that is valid. If both are, the specification's order is used, and runs warn. */
    HEALCL_EXPAND_VALID,
    HEALCL_EXPAND_SPECIFICATION, /* axis, repeats: the specification's order */
    HEALCL_EXPAND_SDK,           /* repeats, axis: the order of the runtime in HEAL's SDK */
};

/* How transcripts, and calls of queues, are checked and planned. Zeros are the defaults. */
struct healcl_plan_options {
    /* Most bytes of a tensor, and of all tensors at one time. It includes additional memory of an
     * operation that grows with its views: the packed copy of a download that is not contiguous,
     * the tables of a CRT. 0: 2^63-1. */
    uint64_t memory_limit;
    /* Most elements that an operation may visit, even if fewer are stored. These are the terms of
     * its sums, n (1 + log2 n) for a transform of length n, and the elements it copies or compares.
     * 0: 2^42. */
    uint64_t work_limit;
    /* Operations of manifests, which may be used besides the built-in ones. NULL: none. */
    const struct healcl_operations *operations;
    enum healcl_expand expand; /* the order of expand's integers */
    /* Passes make the segments of a transcript faster and change no result. Their names (`healcl
     * inspect --help`) are separated by commas, or the text is "none". NULL: all passes. Queues
     * have no passes. */
    const char *passes;
};

/*
 * Maps a transcript, checks it completely and plans it. options may be NULL. Errors: HEALCL_USAGE
 * if the file cannot be read or a pass does not exist; HEALCL_REFUSED with entry, operation and
 * argument in the message; HEALCL_NO_MEMORY.
 *
 * A packed file is unpacked in the folder TMPDIR. Any other file stays open and mapped until the
 * transcript is closed. If it is written or truncated before that, runs and comparisons return
 * HEALCL_REFUSED with HEALCL_CAUSE_FILE, unless all results are as expected. The file's size is
 * checked before each tensor is read. If the file is truncated during a read, or its disk fails,
 * the process gets SIGBUS. The library installs no handler for SIGBUS; the program healcl does.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_open(
    const char *path, const struct healcl_plan_options *options,
    struct healcl_transcript **transcript, struct healcl_error *error);

/* As healcl_transcript_open, for a transcript in memory. data: `length` bytes, packed or not. data
 * belongs to the caller, and must not change until the transcript is closed. */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_open_memory(
    const void *data, size_t length, const struct healcl_plan_options *options,
    struct healcl_transcript **transcript, struct healcl_error *error);
void healcl_transcript_close(struct healcl_transcript *transcript);

/* Element types of tensors: signed integers in two's complement and the host's byte order. */
enum healcl_dtype {
    HEALCL_INT8,
    HEALCL_INT32,
    HEALCL_INT64,
};

/* A tensor that a transcript uploads or downloads. The transcript owns all pointers. */
struct healcl_tensor_info {
    const char *name; /* name of the device's tensor: digits, or text in double quotes */
    size_t entry;     /* entry of the transcript, counted from 0 */
    size_t segment;   /* number of the segment, counted from 0 */
    enum healcl_dtype dtype;
    uint32_t rank;
    const int64_t *shape; /* sizes of the axes, `rank` of them */
    size_t bytes;         /* size of its elements, packed */
    bool has_data;        /* an input has data in the file; a result has an expected tensor */
};

/* Return the inputs and results of a transcript, in its order. Inputs are uploads of at least one
 * element. Results are all downloads. Sessions refer to both by number, from 0. *count is 0 for a
 * NULL transcript. */
const struct healcl_tensor_info *healcl_transcript_inputs(
    const struct healcl_transcript *transcript, size_t *count);
const struct healcl_tensor_info *healcl_transcript_results(
    const struct healcl_transcript *transcript, size_t *count);

/* Copy the elements that the file contains for an input, or the expected elements of a result. They
 * are packed, in C order, with shape and dtype of struct healcl_tensor_info. Each call decodes
 * them. bytes: exactly their size. Errors: HEALCL_USAGE if the number does not exist, has_data is
 * false, or bytes is another size; HEALCL_REFUSED if the expected tensor's shape differs from the
 * result's, if the result's dtype cannot hold a value, or if the file has changed;
 * HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_read_input(
    const struct healcl_transcript *transcript, size_t input, void *memory, size_t bytes,
    struct healcl_error *error);
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_read_expected(
    const struct healcl_transcript *transcript, size_t result, void *memory, size_t bytes,
    struct healcl_error *error);

/*
 * Makes a transcript that processes `batch` requests at once. inputs: the numbers of the
 * inputs that each request brings. They get a new first axis of `batch` requests. So does each
 * result that depends on them: request i is slice [i]. All other inputs, such as keys, weights and
 * tables, are unchanged, and read once for all requests. Numbers of inputs, results and segments
 * do not change. Sessions open the new transcript like any other, and the given inputs must be
 * bound:
 *
 *     healcl_transcript_widen(transcript, (size_t[]){input}, 1, 8, &wide, &error);
 *     healcl_session_open(wide, device, NULL, &session, &error);
 *     healcl_session_bind(session, input, eight_images, &error);
 *
 * The caller closes *wide, which retains what it needs of transcript, and has its plan
 * options. If the data of one request are refused, the whole run is. A result with an
 * expected tensor is compared slice by slice. Errors: HEALCL_USAGE for a batch below 1, or an input
 * that does not exist; HEALCL_REFUSED for more than 65,536 requests or a size beyond the limits,
 * and with entry and operation for what cannot be widened: operations of manifests without a body,
 * and transfers of tensors of 16 axes; HEALCL_NO_MEMORY.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_widen(
    const struct healcl_transcript *transcript, const size_t *inputs, size_t input_count,
    int64_t batch, struct healcl_transcript **wide, struct healcl_error *error);

/* Return the number of segments, and the name of one. The name is "" for operations outside any
 * segment, and NULL after the last segment. */
size_t healcl_transcript_segment_count(const struct healcl_transcript *transcript);
const char *healcl_transcript_segment_name(const struct healcl_transcript *transcript,
                                           size_t segment);

/* ---------------------------------------------------------------- one request, many ranks */

/* Selects a rank's part of a transcript. An input is split along an axis, and so is everything that
 * depends on this axis. All other tensors are whole on each rank. If the axis is summed, each rank
 * has one summand. Ranks exchange summands during runs (struct healcl_session_options), so that
 * each gets the whole sum. */
struct healcl_split {
    size_t input; /* number of the input */
    uint32_t axis;
    uint32_t rank, ranks; /* rank is in [0, ranks) */
};

/* Makes the part of a rank: a separate transcript of the same file. If the axis cannot be divided
 * evenly, the first ranks have one index more. A segment ends at each exchange, so several segments
 * may have the same name. Numbers of inputs and results do not change. transcript may be closed
 * first. Errors: HEALCL_USAGE for an input, axis or rank that does not exist, for more ranks than
 * indices, and for a transcript that is a part; HEALCL_REFUSED if an operation mixes the axis or
 * takes a part of it, with entry and operation; HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_split(
    const struct healcl_transcript *transcript, const struct healcl_split *split,
    struct healcl_transcript **part, struct healcl_error *error);

/* Sets input and axis of split to those that need the least memory, work and exchange per rank.
 * split->ranks must be set. Errors: HEALCL_REFUSED if no input can be split; HEALCL_USAGE for 0
 * ranks; HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_choose_split(
    const struct healcl_transcript *transcript, struct healcl_split *split,
    struct healcl_error *error);

/* The elements of a whole tensor that a rank has: the indices [start, start + size) in each period
 * of an axis. A period is the whole axis, unless an operation has merged this axis with another
 * one. */
struct healcl_part {
    uint32_t axis;
    int64_t start, size, period; /* period is 0 if the rank has the whole tensor */
};

/* Return a rank's part of an input or result by its number. All parts are whole if the transcript
 * was not split. */
struct healcl_part healcl_transcript_input_part(const struct healcl_transcript *transcript,
                                                size_t input);
struct healcl_part healcl_transcript_result_part(const struct healcl_transcript *transcript,
                                                 size_t result);

/* The costs of running a part. */
struct healcl_split_facts {
    uint64_t tensor_bytes;   /* peak memory of tensors */
    size_t exchanges;        /* number of tensors that ranks sum up */
    uint64_t exchange_bytes; /* total size of these tensors */
};

struct healcl_split_facts healcl_transcript_split_facts(const struct healcl_transcript *transcript);

/* A tensor of which each rank has one summand. Element i of data is in [0, q), with q = moduli[i /
 * each % modulus_count]. */
struct healcl_exchange {
    size_t segment; /* number of the segment that has ended, from 0 */
    size_t number;  /* number of the exchange within the segment */
    enum healcl_dtype dtype;
    size_t elements;
    const int64_t *moduli; /* valid only during the call */
    size_t modulus_count, each;
};

/* Adds others to the elements [first, first + count) of sum, modulo q. sum: the whole tensor.
 * others: only these elements, of another rank's summand. All must be in [0, q), and so are the
 * results. */
void healcl_exchange_add(const struct healcl_exchange *exchange, size_t first, size_t count,
                         void *sum, const void *others);

/* ---------------------------------------------------------------- devices */

struct healcl_device;

/* Opens one OpenCL device. selector: "0:1" (platform and device index), part of a platform's name
 * or version ("pocl"), part of a device's name, or "cpu", "gpu" or "acc". NULL or "": HEALCL_DEVICE
 * of the environment, else the best device (GPU before accelerator before CPU). The host reference,
 * which programs call "reference", is not a device: pass NULL for it. When a device is first opened
 * with its driver, it runs a self-test of its arithmetic. The first device that a process opens or
 * lists loads OpenCL: docs/EMBEDDING.md. Errors: HEALCL_USAGE if no usable device matches, and for
 * "reference"; HEALCL_DEVICE, also if the self-test fails. */
HEALCL_MUST_CHECK enum healcl_status healcl_device_open(const char *selector,
                                                        struct healcl_device **device,
                                                        struct healcl_error *error);
void healcl_device_close(struct healcl_device *device);

/* Options for opening a device: the caller's own context, queue, memory functions and log. Each may
 * be NULL. */
struct healcl_device_options {
    /* As for healcl_device_open. With a context, it is used if device is NULL. */
    const char *selector;
    /* The caller's cl_context, a cl_device_id in it, and a command queue of both; all are retained.
     * healcl_run, sessions and queues of this device then use that queue, in order with the
     * caller's own commands. Threads take turns in using it. Without CL_QUEUE_PROFILING_ENABLE,
     * operations are timed with the host's clock. */
    void *context;
    void *device;
    void *queue; /* a cl_command_queue */
    /* Called with one line about an action of the library, such as a built program, or memory freed
     * because there was too little. Any thread that uses the device may call it. line is valid only
     * during the call. */
    void (*log)(void *context, const char *line);
    void *log_context;
    /* Allocation of device memory. allocate returns a buffer of at least `bytes`
     * (CL_MEM_READ_WRITE), or NULL if there is no room. release gets the buffer back when no
     * command uses it. Any thread that uses the device may call them. Both NULL: clCreateBuffer and
     * clReleaseMemObject. */
    void *(*allocate)(void *context, size_t bytes); /* a cl_mem */
    void (*release)(void *context, void *memory);
    void *memory_context;
    /* A package that `healcl compile` made for the device, or NULL. All programs then come from the
     * package and none is built, so even a device without a compiler can be opened. */
    const char *package;
    /* Refuse steps for which the device's compiler builds no kernel. Otherwise the host runs such
     * steps, slowly, with transfers before and after. Reports, struct healcl_session_facts,
     * healcl_queue_fallbacks and log show that. */
    bool no_fallback;
};

/* As healcl_device_open. options may be NULL. Further errors: HEALCL_USAGE if a package cannot be
 * read; HEALCL_REFUSED if it is damaged, or made for another device, driver or healcl. */
HEALCL_MUST_CHECK enum healcl_status healcl_device_open_with(
    const struct healcl_device_options *options, struct healcl_device **device,
    struct healcl_error *error);

enum healcl_device_type {
    HEALCL_DEVICE_OTHER,
    HEALCL_DEVICE_CPU,
    HEALCL_DEVICE_GPU,
    HEALCL_DEVICE_ACCELERATOR,
};

/* A device of this machine. */
struct healcl_device_info {
    char selector[24]; /* selector for healcl_device_open: "0:1" */
    char name[256], vendor[128], platform[128], driver[128], version[128];
    enum healcl_device_type type;
    uint32_t compute_units;
    uint64_t memory_bytes; /* only a hint: some drivers report wrong values */
    bool shares_memory;    /* the device shares memory with the host */
    /* Why the device cannot be used, such as "it has no compiler"; "" if it can. */
    char unusable[160];
};

/* Lists all devices of all platforms, usable or not. Free *list with healcl_device_list_free. An
 * empty list is not an error. Errors: HEALCL_DEVICE if OpenCL cannot be loaded, or no platform can
 * list its devices; HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_device_list(struct healcl_device_info **list,
                                                        size_t *count, struct healcl_error *error);
void healcl_device_list_free(struct healcl_device_info *list);

/* Describes an open device. */
struct healcl_device_info healcl_device_describe(const struct healcl_device *device);

/* ---------------------------------------------------------------- runs */

/* The purpose of a repetition. */
enum healcl_phase {
    HEALCL_WARMING_UP, /* warm-up: the device compiles kernels, and runs each for the first time */
    HEALCL_MEASURING,  /* measures the times of segments */
    HEALCL_PROFILING,  /* measures the times of operations */
};

/* Functions that a run calls during its work; each may be NULL. Strings are valid only during the
 * call. */
struct healcl_observer {
    void *context;
    /* Called before each repetition. number: from 1 to count, within this phase. */
    void (*repetition)(void *context, enum healcl_phase phase, uint32_t number, uint32_t count);
    /* Called with one line about a result that differs, or a warning. */
    void (*difference)(void *context, const char *line);
    void (*warning)(void *context, const char *line);
    /* Called before each segment, and during long ones. */
    void (*progress)(void *context, size_t segment, size_t segment_count, const char *name,
                     size_t step, size_t step_count);
    /* Called before each operation, and repeatedly during one that the host computes. Returning
     * true ends the run with HEALCL_CANCELLED. */
    bool (*cancelled)(void *context);
};

/* The caller's elements for an input, instead of the file's: see healcl_session_bind. */
struct healcl_input {
    size_t input; /* number of the input */
    const void *data;
};

struct healcl_run_options {
    bool no_verify; /* do not compare results */
    bool profile;   /* time operations too; on a device this takes further repetitions */
    /* Count the first repetition, even if kernels ran in it for the first time. Otherwise such a
     * repetition is a warm-up, whose times are not reported. */
    bool no_warm_up;
    uint32_t repeat;                   /* number of repetitions that count; 0 is 1 */
    const char *dump_dir;              /* folder in which to write results as .npy files, or NULL */
    const struct healcl_input *inputs; /* `input_count` inputs, read in each repetition */
    size_t input_count;
    struct healcl_observer observer;
    /* Most bytes to allocate on the device; 0: no limit. Tensors that are not needed soon are
     * removed from the device to make room: docs/MEMORY.md. */
    uint64_t device_memory_bytes;
};

enum healcl_verdict {
    HEALCL_NOTHING_TO_VERIFY,
    HEALCL_VERIFIED,
    HEALCL_DIFFERS,
};

struct healcl_operation_profile {
    const char *name;     /* name of the operation, as in docs/OPS.md */
    uint64_t count;       /* number of times it ran in one repetition */
    uint64_t nanoseconds; /* time in the median repetition; 0 without profile */
    /* The operation's steps that the host ran in one repetition because the device could not; their
     * time, with transfers; and the reason of the first one, or NULL. A step of several operations
     * counts for each of them, its time only for the last. */
    uint64_t fallbacks, fallback_nanoseconds;
    const char *fallback_reason;
};

struct healcl_segment_profile {
    const char *name; /* "" for operations outside of any segment */
    uint64_t operations;
    uint64_t bytes_up, bytes_down;
    uint64_t results, results_compared, results_different; /* of this segment */
    uint64_t nanoseconds; /* median time by the host's clock, from first enqueue to last result */
    /* With profile, medians over the repetitions that timed operations. First the same time, then
     * the parts of it in which the device was idle between two kernels: because it had no command,
     * or because the driver had not begun the command. Both parts are 0 with operations_by_host. */
    uint64_t profiled_nanoseconds;
    uint64_t without_command_nanoseconds, not_begun_nanoseconds;
    struct healcl_operation_profile *profiles;
    size_t profile_count;
};

/* A manifest's kernel that ran, for the manifest's own operation or in place of a built-in
 * kernel. */
struct healcl_manifest_kernel {
    const char *name;     /* name of the alternative: "key_switch[STAGES=3]" */
    const char *what;     /* its operation, or the built-in kind of step it replaces: "ntt" */
    const char *manifest; /* file name of the manifest, without its folder */
    bool replaces;
    uint64_t steps; /* number of steps that it ran in one repetition */
    bool tuned;     /* healcl tune has chosen this alternative for the device */
};

struct healcl_report {
    enum healcl_verdict verdict;
    uint64_t results, results_compared, results_different;
    uint64_t dropped_digits;    /* values with gadget digits beyond g_exp, in one repetition */
    uint64_t fallbacks;         /* steps that the host ran for the device in one repetition */
    uint64_t device_bytes_peak; /* peak of bytes allocated on the device */
    /* The part of device_bytes_peak that is allocated for tensors, without scratch memory and
     * derived tables; and the peak size of the tensors themselves. Both are 0 on the reference, and
     * with limited device memory. */
    uint64_t tensor_bytes_allocated, tensor_bytes_live;
    uint64_t compile_nanoseconds; /* time to build programs, not counted in repetitions */
    uint64_t programs_built;      /* programs of kernels built from source */
    uint64_t programs_loaded; /* programs of kernels loaded from an earlier process's binaries */
    uint64_t first_launches;  /* launches of kernels that had not run on this context before */
    /* With profile, and after a warm-up: the time until the driver began these launches, because
     * some drivers compile a kernel only then. With operations_by_host, the time until they had
     * ended. */
    uint64_t first_launch_nanoseconds;
    uint64_t warm_up_nanoseconds; /* time of the repetition before those that count, or 0 */
    uint64_t verify_nanoseconds;  /* time to compare and write results, in all repetitions */
    /* The times of `run_count` repetitions with warm kernels, without verifying and building. */
    uint64_t *run_nanoseconds;
    size_t run_count;
    /* With profile, two parts of each of these times, by the host's clock: decoding uploads, and
     * running the device's kernels or the host's steps. The rest is transfers. The host waits for
     * the device between transfers and kernels of a segment. NULL without profile. */
    uint64_t *decode_nanoseconds, *compute_nanoseconds;
    /* The times of the later repetitions in which a device timed operations: 5, or run_count if
     * that is less. There are none on the reference. */
    uint64_t *profiled_nanoseconds;
    size_t profiled_count;
    /* Whether operations are timed with the host's clock: on the reference, and on a device whose
     * driver reports no times. Then each command was waited for, and its time includes the wait. */
    bool operations_by_host;
    struct healcl_segment_profile *segments;
    size_t segment_count;
    struct healcl_manifest_kernel *manifest_kernels;
    size_t manifest_kernel_count;
    /* With limited device memory, for one repetition: the limit, the peak of tensor bytes on the
     * device, the bytes moved to make room, and the time to move them. */
    uint64_t device_memory_limit, tensor_bytes_peak;
    uint64_t bytes_spilled, bytes_brought_back; /* bytes moved to the host, and from the host */
    uint64_t bytes_streamed_again; /* repeated uploads, not counting the first one of each tensor */
    uint64_t spill_nanoseconds;
};

/* Runs a transcript on a device, or on the host reference if device is NULL. Compares every result
 * that has an expected tensor. Returns HEALCL_OK with a report even if results differ (see
 * verdict). options may be NULL. Errors: HEALCL_REFUSED for faults of the data (an index out of
 * range, a zero modulus in a tensor), for a file that has changed, and for steps larger than
 * device_memory_bytes or the device; HEALCL_DEVICE; HEALCL_NO_MEMORY; HEALCL_CANCELLED;
 * HEALCL_USAGE if dump_dir cannot be written, or for a part with exchanges, which only sessions
 * run. */
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
 * Uploads such as keys, tables and weights stay on the device between runs. Only bound inputs, and
 * inputs that an operation writes, are uploaded again. If a tensor is larger than one allocation of
 * the device, tensors move in slices, and all inputs are uploaded in each run.
 *
 * Threads: one at a time for each session, but any thread may cancel. Several sessions may run at
 * the same time, also on one device; each has its own queues and kernels. On devices whose queues
 * cannot work at the same time, sessions take turns after each segment. A run that was started in
 * the background runs in a thread of the session. Until it is waited for, functions other than
 * ..._poll, ..._wait and ..._cancel return HEALCL_USAGE.
 */
struct healcl_session;

struct healcl_session_options {
    /* Upload every input in every run. healcl_session_keep overrides this for one input. */
    bool keep_nothing;
    /* The share of time for audits, from 0 (none) to 1. An audit repeats on the host reference
     * some steps that the device has run, and compares the results: see healcl_session_audit. */
    double audit_share;
    /* The seed for choosing audited steps. The same seed, requests and times give the same
     * choice. */
    uint64_t audit_seed;
    /* Replaces data, this rank's packed summand of a tensor, by the sum over all ranks. All ranks
     * call it for the same tensors in the same order, from the thread that runs the session. A
     * status other than HEALCL_OK ends the run. NULL: a part with exchanges cannot be opened. */
    enum healcl_status (*exchange)(void *context, const struct healcl_exchange *exchange,
                                   void *data, struct healcl_error *error);
    void *exchange_context;
};

/* Opens a session. It does not plan again, and runs no step. It builds the kernels of steps, which
 * may take seconds on a new machine; the first run reports what cannot be built. device: NULL for
 * the host reference.
 * Both transcript and device belong to the caller, and may be closed before the session, which
 * retains what it needs. device must not be closed before this returns. options may be NULL.
 * Errors: HEALCL_USAGE for an audit of the reference, a share outside [0, 1], or exchanges without
 * a function for them; HEALCL_REFUSED for steps larger than the device, or exchanges with a tensor
 * larger than one allocation; HEALCL_DEVICE; HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_open(
    const struct healcl_transcript *transcript, struct healcl_device *device,
    const struct healcl_session_options *options, struct healcl_session **session,
    struct healcl_error *error);
/* Closes a session. Waits for a run in the background. */
void healcl_session_close(struct healcl_session *session);

/* Binds data to an input, from the next run on. NULL: the input is read from the file again. data:
 * packed, in C order, as many bytes as healcl_transcript_inputs reports. The data belong to the
 * caller, and each run reads them. Errors: HEALCL_USAGE if the input does not exist. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_bind(struct healcl_session *session,
                                                         size_t input, const void *data,
                                                         struct healcl_error *error);

/* Sets whether an input that is not bound stays on the device between runs. An input that an
 * operation writes never stays. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_keep(struct healcl_session *session,
                                                         size_t input, bool keep,
                                                         struct healcl_error *error);

/* Runs all segments. Where inputs are bound, segments before the first of these are left out from
 * the second run on, if they would only be repeated: their inputs are on the device, they have no
 * results, and later segments change or free none of their tensors.
 * Errors: as healcl_run; HEALCL_REFUSED for an input without data; HEALCL_DIFFERENT if an audited
 * step differs, which makes all results of the run invalid. After one of these errors no segment
 * has results, and the next run must begin with the first segment. HEALCL_USAGE changes nothing. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_run(struct healcl_session *session,
                                                        struct healcl_error *error);

/* Runs `count` segments from number `first` on, with the results of earlier segments. Segments
 * can run again as long as their inputs still exist. Errors: HEALCL_USAGE if a later segment has
 * overwritten or freed a tensor of an earlier one, if the segments before `first` have not run, or
 * to run a later segment than the first again where a tensor is larger than one allocation. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_run_segments(struct healcl_session *session,
                                                                 size_t first, size_t count,
                                                                 struct healcl_error *error);

/* As healcl_session_run_segments, in the background. done, which may be NULL, is called in the
 * background thread once the run has ended. It may read results, but must not call other functions
 * of the session. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_start(
    struct healcl_session *session, size_t first, size_t count,
    void (*done)(void *context, enum healcl_status status), void *context,
    struct healcl_error *error);

/* Whether no run is in progress in the background. A run that was started must still be waited
 * for. */
bool healcl_session_poll(const struct healcl_session *session);

/* Waits for the run that was started, and returns its status. HEALCL_USAGE if none was started. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_wait(struct healcl_session *session,
                                                         struct healcl_error *error);

/* Ends the current run, if there is one, with HEALCL_CANCELLED: before its next operation,
 * during one that the host computes, or while it waits for the device, which continues. */
void healcl_session_cancel(struct healcl_session *session);

/* Writes a result to the caller's memory when it is available, in each run from the next one on.
 * The result is packed and in C order. NULL: use the session's own memory again. memory must have
 * room for as many bytes as healcl_transcript_results reports. After a failed run its contents are
 * undefined. A result in the session's own memory stays there until the next run. Memory that this
 * call replaces may be freed by the caller; the session no longer has the result in it. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_receive(struct healcl_session *session,
                                                            size_t result, void *memory,
                                                            struct healcl_error *error);

/* Returns the elements of a result, packed and in C order. They are in the memory that
 * healcl_session_receive set before the run, or in the session's memory, until its next run.
 * HEALCL_USAGE if they do not exist: the segment has not run, the last run failed, or
 * healcl_session_receive has released them. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_map(struct healcl_session *session,
                                                        size_t result, const void **data,
                                                        struct healcl_error *error);

/* Copies the elements of a result to memory. bytes: exactly their size. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_read(struct healcl_session *session,
                                                         size_t result, void *memory, size_t bytes,
                                                         struct healcl_error *error);

/* Compares a result with the tensor that the transcript expects. *different: the number of elements
 * that differ, or all if the shape differs. HEALCL_USAGE if no tensor is expected; HEALCL_REFUSED
 * if the result differs and the file has changed. */
HEALCL_MUST_CHECK enum healcl_status healcl_session_compare(struct healcl_session *session,
                                                            size_t result, uint64_t *different,
                                                            struct healcl_error *error);

/* Facts about a session and its last run. */
struct healcl_session_facts {
    uint64_t runs;                 /* number of runs without error */
    uint64_t nanoseconds;          /* time of the last run, from its beginning to its last result */
    uint64_t bytes_uploaded;       /* bytes of inputs uploaded in the last run */
    uint64_t fallbacks;            /* steps that the host ran because the device could not */
    uint64_t dropped_digits;       /* number of values with gadget digits beyond g_exp */
    uint64_t device_bytes;         /* bytes that this session has allocated on the device now */
    uint64_t device_bytes_peak;    /* peak of device_bytes so far */
    uint64_t exchange_nanoseconds; /* part of nanoseconds spent in exchanges */
};

/* Returns the facts. All are 0 if the session is NULL, or while it runs in the background. */
struct healcl_session_facts healcl_session_facts(const struct healcl_session *session);

/* ---- audits ---- */

/* The audits of a kernel that runs steps of the transcript on the device. */
struct healcl_audit_kernel {
    const char *name;     /* such as "modmul, vectors, int64"; or a manifest's name */
    size_t steps;         /* number of the plan's steps that it runs and that can be audited */
    size_t steps_audited; /* number of these steps that were audited at least in part */
    uint64_t audits;
    uint64_t elements; /* number of output elements compared */
};

/* A step whose output differs from the host reference's for the same inputs. */
struct healcl_audit_difference {
    size_t entry;          /* entry of the transcript */
    const char *operation; /* the operation's name in that entry */
    size_t step;           /* number of the step in the plan */
    const char *kernel;
    uint64_t element; /* first differing element of the output, as the kernel sees it, in C order */
    char index[160];  /* its index as text: "[1, 0]" */
    int64_t actual;   /* value of the device at that place */
    int64_t expected; /* value of the reference at that place */
    uint64_t different; /* number of compared elements that differ */
    uint64_t compared;
};

struct healcl_audit_facts {
    size_t steps;             /* number of the plan's steps that can be audited */
    size_t steps_audited;     /* number of these steps that were audited at least in part */
    uint64_t steps_left_out;  /* steps of vendors' kernels, which no audit can repeat */
    uint64_t audits;          /* number of repeated steps, each time counted */
    uint64_t elements;        /* number of elements compared */
    uint64_t nanoseconds;     /* part of the runs' time spent on audits */
    uint64_t run_nanoseconds; /* time of all runs, audits included */
    size_t kernel_count;
    const struct healcl_audit_kernel *kernels; /* owned by the session */
    /* The difference that ended the last run, or NULL. Valid until the next run. */
    const struct healcl_audit_difference *difference;
};

/* Returns the coverage of audits in all runs. All 0 if the session is NULL, has no audits, or runs
 * in the background. */
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
    size_t batch; /* most requests in a batch, at least 1 */
    /* Numbers of the inputs that each request brings (healcl_transcript_inputs). */
    const size_t *inputs;
    size_t input_count;
    /* Most bytes for a batch's tensors. 0: as much as the device reports. On the host, and on
     * devices that share its memory, 0 means the transcript's limits. */
    uint64_t memory_bytes;
};

/* Opens a batcher. If `batch` requests do not fit in memory, it uses the largest number that fits:
 * see healcl_batcher_facts. device: NULL for the host reference. transcript, device and options
 * belong to the caller, and may be freed before the batcher. Errors: as healcl_transcript_widen and
 * healcl_session_open; HEALCL_REFUSED if not even one request fits. */
HEALCL_MUST_CHECK enum healcl_status healcl_batcher_open(
    const struct healcl_transcript *transcript, struct healcl_device *device,
    const struct healcl_batcher_options *options, struct healcl_batcher **batcher,
    struct healcl_error *error);
void healcl_batcher_close(struct healcl_batcher *batcher);

struct healcl_request {
    /* The caller's elements for each input of the options, as for healcl_session_bind. */
    const void *const *inputs;
    /* Memory for each result of the transcript, by number, with room for as many bytes as
     * healcl_transcript_results reports. NULL: the result is not needed. results NULL: no result is
     * needed. */
    void *const *results;
    /* The outcome: HEALCL_OK, or HEALCL_REFUSED because of the request's own data. The caller
     * clears error. */
    enum healcl_status status;
    struct healcl_error error;
    uint64_t nanoseconds; /* time it took, with the others of its batch */
};

/* Runs requests in their order, one batch after the other. If the last batch is less than half
 * full, its requests run one by one. If data make a batch refuse, its requests also run one by one,
 * and only those at fault fail. Errors: as healcl_session_run, except for that; requests that have
 * not run then have no status. */
HEALCL_MUST_CHECK enum healcl_status healcl_batcher_run(struct healcl_batcher *batcher,
                                                        struct healcl_request *requests,
                                                        size_t count, struct healcl_error *error);

struct healcl_batcher_facts {
    size_t batch;          /* most requests in a batch that fit */
    uint64_t memory_bytes; /* peak memory of a batch's tensors */
    uint64_t runs;         /* number of batches and of single requests so far */
    /* Number of requests in batches and of single requests so far. */
    uint64_t requests_together, requests_alone;
    uint64_t bytes_uploaded, fallbacks; /* for the last run, as in struct healcl_session_facts */
    uint64_t device_bytes;              /* bytes allocated on the device now */
};

/* Returns the facts. All are 0 if the batcher is NULL. */
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

/* Opens a queue. device: NULL for the host reference; it belongs to the caller, who may close it
 * after this returns. options may be NULL. Errors: HEALCL_DEVICE, HEALCL_NO_MEMORY. */
HEALCL_MUST_CHECK enum healcl_status healcl_queue_open(struct healcl_device *device,
                                                       const struct healcl_plan_options *options,
                                                       struct healcl_queue **queue,
                                                       struct healcl_error *error);
struct healcl_queue_options {
    const struct healcl_plan_options *plan; /* of its calls; may be NULL */
    /* Wait for each call. Then data errors are errors of the call itself, not of the next function
     * that waits. */
    bool synchronous;
    /* Called repeatedly in the thread of the current call or wait. Returning true ends it, as
     * healcl_queue_cancel does. NULL: not called. */
    bool (*cancelled)(void *context);
    void *cancelled_context;
};

/* As healcl_queue_open, with options, which may be NULL. */
HEALCL_MUST_CHECK enum healcl_status healcl_queue_open_with(
    struct healcl_device *device, const struct healcl_queue_options *options,
    struct healcl_queue **queue, struct healcl_error *error);

/* Closes a queue and frees the device memory of its tensors. Remaining handles must still be
 * released, at any time. Until then they only have their own memory, and can be described. */
void healcl_queue_close(struct healcl_queue *queue);

/* Waits for all calls. Errors: HEALCL_REFUSED for data errors; HEALCL_DEVICE; HEALCL_CANCELLED.
 * After HEALCL_CANCELLED calls continue, and nothing is lost. After another error the tensors that
 * the failed call and later calls write have undefined contents. */
HEALCL_MUST_CHECK enum healcl_status healcl_queue_wait(struct healcl_queue *queue,
                                                       struct healcl_error *error);

/* Whether healcl_queue_wait would return at once, because all calls have ended or the queue is
 * NULL. */
bool healcl_queue_poll(struct healcl_queue *queue);

/* Ends the current function of the queue or its tensors, if there is one, with HEALCL_CANCELLED.
 * Any thread may call this. Enqueued calls continue, and can be waited for later. A call that
 * waited for others is not made. A call that the host computes ends early, and leaves its output
 * undefined. A transfer of a read or write that has begun is completed first. */
void healcl_queue_cancel(struct healcl_queue *queue);

/* Returns the number of steps so far that the host ran because the device could not; 0 for a NULL
 * queue. */
uint64_t healcl_queue_fallbacks(const struct healcl_queue *queue);

/* Creates a tensor in C order, with a copy of data, or with zeros if data is NULL. The caller
 * releases it. Errors: HEALCL_REFUSED for a bad shape or a size beyond the limits;
 * HEALCL_NO_MEMORY; HEALCL_DEVICE. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_create(struct healcl_queue *queue,
                                                          enum healcl_dtype dtype, uint32_t rank,
                                                          const int64_t *shape, const void *data,
                                                          struct healcl_tensor **tensor,
                                                          struct healcl_error *error);

/* Releases a handle, which may be NULL. Any thread may do so, also during another thread's call of
 * the queue, and after the queue was closed. Memory without handles is reused from the queue's next
 * call on; enqueued calls can still use it. */
void healcl_tensor_release(struct healcl_tensor *tensor);

/* Describes a tensor. entry, segment and has_data are 0, and name is "". shape is valid as long as
 * the handle. */
struct healcl_tensor_info healcl_tensor_describe(const struct healcl_tensor *tensor);

/* Waits for all calls, and copies the elements, packed and in C order. bytes: exactly their
 * size. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_read(struct healcl_tensor *tensor, void *memory,
                                                        size_t bytes, struct healcl_error *error);

/* The layout of a tensor in its storage: element [i, j, ...] is the storage's element offset + i *
 * strides[0] + j * strides[1] + ... */
struct healcl_tensor_layout {
    uint32_t rank;
    /* `rank` values each, in elements; valid as long as the handle. */
    const int64_t *shape, *strides;
    int64_t offset; /* offset in the storage, in elements */
    int64_t storage_elements;
    bool contiguous; /* the elements are adjacent in memory, in C order */
};

/* Returns the layout. All is 0 for a NULL tensor. */
struct healcl_tensor_layout healcl_tensor_layout(const struct healcl_tensor *tensor);

/* Copies data, packed and in C order, into the elements of a tensor, in order with the calls.
 * The tensor may be any view. bytes: exactly the size of data. data may be freed afterwards.
 * Waits for earlier calls if a contiguous tensor has more than 64 KiB. Errors: HEALCL_USAGE for
 * another number of bytes, or while the tensor is mapped; HEALCL_REFUSED if elements share
 * memory (expand). */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_write(struct healcl_tensor *tensor,
                                                         const void *data, size_t bytes,
                                                         struct healcl_error *error);

/* Copies elements to a tensor of the same queue, shape and dtype, without waiting. Both may view
 * one storage and overlap: the result is as if all elements were read first. It counts as a call,
 * "copy". Errors: as healcl_call. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_copy(const struct healcl_tensor *from,
                                                        struct healcl_tensor *to,
                                                        struct healcl_error *error);

/* Waits for all calls, and returns a pointer for reading and writing the elements of a contiguous
 * tensor. Until healcl_tensor_unmap, or the release of the handle, other functions return
 * HEALCL_USAGE for tensors of the same storage. Errors: HEALCL_REFUSED if the tensor is not
 * contiguous; as healcl_queue_wait. */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_map(struct healcl_tensor *tensor, void **data,
                                                       struct healcl_error *error);
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_unmap(struct healcl_tensor *tensor,
                                                         struct healcl_error *error);

/*
 * Returns the cl_mem of a tensor's storage, and the offset of the storage's element 0 in it. The
 * library owns the cl_mem, which may be a sub-buffer. It remains the storage's memory as long as a
 * handle views the storage.
 *
 * The caller's own commands are in order with calls if they use the queue in struct
 * healcl_device_options. On another queue they must begin after healcl_queue_wait, and end before
 * the next call. Errors: HEALCL_USAGE on the host reference.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_tensor_memory(struct healcl_tensor *tensor,
                                                          void **memory, size_t *offset_bytes,
                                                          struct healcl_error *error);

/* Makes a contiguous tensor at the beginning of the caller's cl_mem, which is retained until no
 * handle views it. The rules above apply to the caller's own commands. The memory of two storages
 * must not overlap. Errors: HEALCL_REFUSED for memory of another context, for memory that is too
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

/* An item of the index of get_slice, as in Python: an integer, a slice, or "...". */
struct healcl_index {
    enum healcl_index_kind kind;
    int64_t value; /* value of an integer item */
    bool has_start, has_stop, has_step;
    int64_t start, stop, step;
};

enum healcl_argument_kind {
    HEALCL_ARGUMENT_TENSOR,
    HEALCL_ARGUMENT_INT, /* for integers, axes, moduli and flags */
    HEALCL_ARGUMENT_NONE,
    HEALCL_ARGUMENT_SHAPE,
    HEALCL_ARGUMENT_INDEX,
    HEALCL_ARGUMENT_DTYPE,
};

/* An argument of an operation. docs/OPS.md lists the kinds. */
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
 * that the operation makes or views, or NULL if there is none. For an operation with an `out`, the
 * handle views that. The caller releases it. result may be NULL.
 *
 * With healcl_no_argument() for the `out` of a built-in operation, a new tensor is made, with the
 * shape and dtype that the other arguments imply. modmul_axis_sum then adds to zeros.
 * host_to_device, device_to_host and free_device_tensor are refused, because they have their own
 * functions. Errors: HEALCL_REFUSED for arguments that break the operation's rules, with nothing
 * enqueued; HEALCL_USAGE for a tensor of another queue; HEALCL_DEVICE; HEALCL_NO_MEMORY.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_call(struct healcl_queue *queue, const char *operation,
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
