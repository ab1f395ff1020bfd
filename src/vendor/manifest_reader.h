/* Readers of a manifest: members of its JSON, each refused with the place where it stands. Errors
 * are HEALCL_REFUSED, and HEALCL_NO_MEMORY. */
#ifndef HEALCL_VENDOR_MANIFEST_READER_H
#define HEALCL_VENDOR_MANIFEST_READER_H

#include <cjson/cJSON.h>

#include "vendor/vendor.h"

enum { WORD_MAX = 64, TEXT_MAX = 256 }; /* characters */

struct reader {
    struct vendor_operations *operations;
    struct arena *arena;
    const char *folder, *file, *text;
    const char *file_name; /* the manifest's, without its folder: of the arena */
    const cJSON *root;
    bool is_trusted;
    struct healcl_error *error;
    struct pending *pending;
};

/* Native code that a manifest names: it is loaded once all of that is right. */
struct pending {
    const cJSON *object;
    struct vendor_kernel *kernel;
    const char *path;
    struct pending *next;
};

#define REFUSE_AT(reader, node, member, ...)                       \
    do {                                                           \
        (void)ERROR((reader)->error, HEALCL_REFUSED, __VA_ARGS__); \
        return manifest_refused(reader, node, member);             \
    } while (0)

/* Forwards an error, with the place if it is a refusal. */
#define TRY_AT(reader, node, member, expression)          \
    do {                                                  \
        enum healcl_status at_status_ = (expression);     \
        if (at_status_ != HEALCL_OK) {                    \
            (void)manifest_refused(reader, node, member); \
            return at_status_;                            \
        }                                                 \
    } while (0)

/* ---- manifest_members.c ---- */

/* Puts file, line and field in front of a message: those of a node, or of a member that it has or
 * lacks. */
enum healcl_status manifest_refused(const struct reader *reader, const cJSON *node,
                                    const char *member);

/* Refuses what is no object, and members that are not among those named, up to NULL, or come twice.
 */
enum healcl_status manifest_check_members(const struct reader *reader, const cJSON *object,
                                          const char *const *names);

const cJSON *manifest_member(const cJSON *object, const char *name);

enum healcl_status manifest_keep(const struct reader *reader, const char *text, const char **kept);

/* A text of printable ASCII; *text stays NULL where it is absent and may be. */
enum healcl_status manifest_read_text(const struct reader *reader, const cJSON *object,
                                      const char *name, bool needed, size_t most,
                                      const char **text);

/* Whether a text is a name as C has them, of at most WORD_MAX characters. */
bool manifest_is_word(const char *text);

enum healcl_status manifest_read_word(const struct reader *reader, const cJSON *object,
                                      const char *name, const char **text);

/* A list of at most so many items; NULL where it is absent. */
enum healcl_status manifest_read_list(const struct reader *reader, const cJSON *object,
                                      const char *name, bool needed, int most, const cJSON **list);

/* One of the words of a list that ends with NULL; *index is its place, or where there is no such
 * member that of absent. */
enum healcl_status manifest_read_choice(const struct reader *reader, const cJSON *object,
                                        const char *name, const char *const *words,
                                        const char *absent, size_t *index);

enum healcl_status manifest_read_expression(const struct reader *reader, const cJSON *node,
                                            const struct expression_names *names,
                                            struct expression **expression);

enum healcl_status manifest_read_expression_member(const struct reader *reader, const cJSON *object,
                                                   const char *name, bool needed,
                                                   const struct expression_names *names,
                                                   struct expression **expression);

/* An integer, or one in a text, where JSON's numbers may not be exact. */
enum healcl_status manifest_read_integer(const struct reader *reader, const cJSON *node,
                                         int64_t *value);

/* ---- manifest_kernels.c ---- */

/* Hashes all that manifests say of kernels, and their sources: lists of kernels differ by it.
 */
enum healcl_status manifest_add_identity(const struct reader *reader, const cJSON *object,
                                         const struct vendor_kernel *kernel, uint64_t *identity);

/* Runs what the library runs when it is loaded. */
enum healcl_status manifest_load_library(const struct reader *reader,
                                         const struct pending *pending);

enum healcl_status manifest_read_kernel(struct reader *reader, const cJSON *object,
                                        const struct expression_names *names,
                                        struct vendor_kernel **made);

#endif
