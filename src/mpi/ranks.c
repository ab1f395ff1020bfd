#include "mpi/ranks.h"

#include <limits.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

enum {
    TAG_QUESTION = 1,
    TAG_ANSWER,
    AWAKE = 50000, /* nanoseconds without a pause: most waits are short */
    REST = 50000,  /* the shortest pause, and the longest */
    REST_MAX = 2000000,
    END_SECONDS = 5 /* most seconds to end all ranks, before this process just exits */
};

/* 0: asks to report an error; else the count of numbers to take */
typedef uint64_t question;

/* Pauses between two polls, for a small part of the time waited so far. Waiting in MPI would keep a
 * processor busy that other ranks may compute on, and sched_yield would wait for whole time slices
 * of other processes. */
static void rest(uint64_t waited)
{
    const uint64_t part = waited / 16, least = part > REST ? part : REST;
    if (waited > AWAKE)
        nanosleep(&(struct timespec){.tv_nsec = least < REST_MAX ? (long)least : REST_MAX}, NULL);
}

/* ---------------------------------------------------------------- rank 0's thread */

static uint64_t answer(struct ranks *ranks, question asked)
{
    pthread_mutex_lock(&ranks->lock);
    uint64_t reply = ranks->next;
    ranks->next += asked;
    if (asked == 0) {
        reply = !ranks->is_failed;
        ranks->is_failed = true;
    }
    pthread_mutex_unlock(&ranks->lock);
    return reply;
}

static void *answer_all(void *context)
{
    struct ranks *ranks = context;
    uint64_t last = monotonic_nanoseconds(); /* when a question came */
    while (!atomic_load(&ranks->is_ending)) {
        int found = 0;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_QUESTION, ranks->desk, &found, &status);
        if (!found) {
            rest(monotonic_nanoseconds() - last);
            continue;
        }
        last = monotonic_nanoseconds();
        question asked;
        MPI_Recv(&asked, 1, MPI_UINT64_T, status.MPI_SOURCE, TAG_QUESTION, ranks->desk,
                 MPI_STATUS_IGNORE);
        const uint64_t reply = answer(ranks, asked);
        MPI_Send(&reply, 1, MPI_UINT64_T, status.MPI_SOURCE, TAG_ANSWER, ranks->desk);
    }
    return NULL;
}

/* Answers match questions by their order: each rank asks one question at a time. */
static uint64_t ask(struct ranks *ranks, question asked)
{
    uint64_t reply = 0;
    if (ranks->rank == 0)
        return answer(ranks, asked);
    pthread_mutex_lock(&ranks->lock);
    MPI_Send(&asked, 1, MPI_UINT64_T, 0, TAG_QUESTION, ranks->desk);
    MPI_Recv(&reply, 1, MPI_UINT64_T, 0, TAG_ANSWER, ranks->desk, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&ranks->lock);
    return reply;
}

uint64_t ranks_take(struct ranks *ranks)
{
    return ask(ranks, 1);
}

/* ---------------------------------------------------------------- beginning and ending */

static void find_host(struct ranks *ranks)
{
    int length = 0;
    MPI_Comm host;
    MPI_Get_processor_name(ranks->host, &length);
    MPI_Comm_split_type(ranks->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &ranks->local);
    MPI_Comm_size(host, &ranks->local_count);
    MPI_Comm_free(&host);
}

/* If the launcher and MPI do not match, each process is rank 0 of 1 and does all the work. */
static void check_launcher(const struct ranks *ranks)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                            "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (ranks->count > 1 || !value || strtoul(value, NULL, 10) < 2)
            continue;
        print_notice("warning: %s is %s, but MPI has 1 rank: each process does all requests; start "
                     "it with MPI's own mpirun, or with srun --mpi=pmix",
                     variables[i], value);
        return;
    }
}

/* The ranks of this process, for use when memory runs out. */
static struct ranks *begun;

static void end_without_memory(void)
{
    struct healcl_error error = {.status = HEALCL_OK};
    (void)ERROR(&error, HEALCL_NO_MEMORY, "out of memory");
    ranks_fail(begun, NULL, &error);
}

void ranks_begin(struct ranks *ranks)
{
    int provided = MPI_THREAD_SINGLE;
    *ranks = (struct ranks){.lock = PTHREAD_MUTEX_INITIALIZER};
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks->comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks->desk);
    MPI_Comm_rank(ranks->comm, &ranks->rank);
    MPI_Comm_size(ranks->comm, &ranks->count);
    find_host(ranks);
    check_launcher(ranks);
    begun = ranks;
    const bool has_threads = provided == MPI_THREAD_MULTIPLE;
    if (has_threads &&
        (ranks->rank > 0 || pthread_create(&ranks->thread, NULL, answer_all, ranks) == 0)) {
        xmalloc_failed = end_without_memory;
        return;
    }
    const int code = has_threads ? EXIT_DEVICE : EXIT_USAGE;
    ranks_notice(ranks, "%s",
                 has_threads ? "cannot start a thread" : "this MPI does not let threads call it");
    verdict_report_last(code);
    MPI_Abort(ranks->comm, code);
    exit(code);
}

bool ranks_wait(MPI_Request *request, unsigned seconds)
{
    const uint64_t start = monotonic_nanoseconds();
    uint64_t waited = 0;
    int done = 0;
    for (; !done && (seconds == 0 || waited < seconds * UINT64_C(1000000000));
         waited = monotonic_nanoseconds() - start) {
        rest(waited);
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
    return done;
}

void ranks_meet(struct ranks *ranks)
{
    MPI_Request request;
    MPI_Ibarrier(ranks->comm, &request);
    (void)ranks_wait(&request, 0);
}

void ranks_share(const struct ranks *ranks, void *data, size_t bytes)
{
    MPI_Request request;
    MPI_Ibcast(data, (int)bytes, MPI_BYTE, 0, ranks->comm, &request);
    /* It does not know ranks_wait. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker) */
    (void)ranks_wait(&request, 0);
}

int ranks_first(const struct ranks *ranks, int code)
{
    ranks_share(ranks, &code, sizeof code);
    return code;
}

void ranks_end(struct ranks *ranks)
{
    ranks_meet(ranks);
    atomic_store(&ranks->is_ending, true);
    if (ranks->rank == 0)
        pthread_join(ranks->thread, NULL);
    MPI_Comm_free(&ranks->desk);
    MPI_Comm_free(&ranks->comm);
    MPI_Finalize();
}

/* ---------------------------------------------------------------- gathering */

void *ranks_gather(struct ranks *ranks, const void *data, size_t bytes)
{
    const size_t count = ranks->rank == 0 ? (size_t)ranks->count : 0;
    const uint64_t own = bytes;
    uint64_t *all = xcalloc(count, sizeof *all);
    MPI_Gather(&own, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, ranks->comm);
    int *counts = xcalloc(count, sizeof *counts), *places = xcalloc(count, sizeof *places);
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        counts[i] = (int)all[i];
        places[i] = (int)total;
        total += all[i];
        if (total > INT_MAX)
            xmalloc_fail();
    }
    char *result = count > 0 ? xmalloc(total) : NULL;
    MPI_Gatherv(data, (int)bytes, MPI_BYTE, result, counts, places, MPI_BYTE, 0, ranks->comm);
    free(all);
    free(counts);
    free(places);
    return result;
}

/* ---------------------------------------------------------------- errors */

/* The alarm if ending takes too long. */
static volatile sig_atomic_t code_of_alarm;
static char unreported[1024]; /* a message that was not printed yet */

static void on_alarm(int number)
{
    (void)number;
    (void)!write(STDERR_FILENO, unreported, strlen(unreported));
    _exit(code_of_alarm);
}

static void report_error(const struct ranks *ranks, const char *file,
                         const struct healcl_error *error)
{
    ranks_notice(ranks, "%s%s%s", file ? file : "", file ? ": " : "", error->message);
    if (error->detail)
        fputs(error->detail, stderr);
}

_Noreturn void ranks_fail(struct ranks *ranks, const char *file, const struct healcl_error *error)
{
    const int code = exit_code(error->status);
    snprintf(unreported, sizeof unreported, "%s: rank %d on %s: %s\n", this_program->name,
             ranks->rank, ranks->host, error->message);
    verdict_report_last(code);
    /* From now on the process ends within seconds, even if MPI hangs. */
    code_of_alarm = code;
    signal(SIGALRM, on_alarm);
    alarm(END_SECONDS);
    const bool tells = ask(ranks, 0) != 0;
    *unreported = 0;
    if (tells) {
        report_error(ranks, file, error);
        MPI_Abort(ranks->comm, code);
    }
    /* Another rank ends this process. If that rank has gone, the alarm does. */
    for (;;)
        pause();
}

int ranks_agree(struct ranks *ranks, enum healcl_status status, const char *file,
                struct healcl_error *error)
{
    const bool is_failed = status != HEALCL_OK;
    const int own = is_failed ? exit_code(status) : GOES_ON;
    int *all = xcalloc((size_t)ranks->count, sizeof *all);
    MPI_Request request;
    MPI_Iallgather(&own, 1, MPI_INT, all, 1, MPI_INT, ranks->comm, &request);
    /* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
    if (!ranks_wait(&request, is_failed ? END_SECONDS : 0))
        ranks_fail(ranks, file, error); /* the request ends with all */
    int first = 0;
    /* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */
    while (first < ranks->count - 1 && all[first] == GOES_ON)
        first++;
    const int code = all[first];
    free(all);
    if (is_failed && first == ranks->rank)
        report_error(ranks, file, error);
    healcl_error_clear(error);
    return code;
}
