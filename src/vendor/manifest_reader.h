/* Readers of a manifest: they read members of its JSON, and report the place of one that they
 * refuse. Errors are HEALCL_REFUSED and HEALCL_NO_MEMORY. */
#ifndef HEALCL_VENDOR_MANIFEST_READER_H
#define HEALCL_VENDOR_MANIFEST_READER_H

#include <cjson/cJSON.h>

#include "vendor/vendor.h"

enum { WORD_MAX = 64, TEXT_MAX = 256 }; /* characters */

struct reader {
    struct vendor_operations *operations;
    struct arena *arena;
    const char *folder, *file, *text;
    const char *file_name; /* the manifest's name, without its folder, in the arena */
    const cJSON *root;
    bool is_trusted;
    struct healcl_error *error;
    struct pending *pending;
};

/* Native code that a manifest names. It is loaded only after the whole manifest was read without
 * error. */
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

/* Forwards an error, and adds the place to a refusal. */
#define TRY_AT(reader, node, member, expression)          \
    do {                                                  \
        enum healcl_status at_status_ = (expression);     \
        if (at_status_ != HEALCL_OK) {                    \
            (void)manifest_refused(reader, node, member); \
            return at_status_;                            \
        }                                                 \
    } while (0)

/* ---- manifest_members.c ---- */

/* Adds file, line and field in front of a message. The field is `member` of the node, present or
 * missing, or the node itself. */
enum healcl_status manifest_refused(const struct reader *reader, const cJSON *node,
                                    const char *member);

/* Refuses a node that is not an object, a member whose name is not in `names`, and one that occurs
 * twice. names ends with NULL. */
enum healcl_status manifest_check_members(const struct reader *reader, const cJSON *object,
                                          const char *const *names);

const cJSON *manifest_member(const cJSON *object, const char *name);

enum healcl_status manifest_keep(const struct reader *reader, const char *text, const char **kept);

/* Reads a text of printable ASCII. *text remains NULL if the member is absent and not needed. */
enum healcl_status manifest_read_text(const struct reader *reader, const cJSON *object,
                                      const char *name, bool needed, size_t most,
                                      const char **text);

/* Whether a text is a C identifier of at most WORD_MAX characters. */
bool manifest_is_word(const char *text);

enum healcl_status manifest_read_word(const struct reader *reader, const cJSON *object,
                                      const char *name, const char **text);

/* Reads a list of at most `most` items. *list is NULL if the member is absent. */
enum healcl_status manifest_read_list(const struct reader *reader, const cJSON *object,
                                      const char *name, bool needed, int most, const cJSON **list);

/* Reads one of the words of a list that ends with NULL. *index is the word's place in the list. A
 * missing member counts as the word `absent`. */
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

/* Reads an integer: a number, or a text with an integer, because JSON's numbers may not be
 * exact. */
enum healcl_status manifest_read_integer(const struct reader *reader, const cJSON *node,
                                         int64_t *value);

/* ---- manifest_kernels.c ---- */

/* Hashes a kernel's part of the manifest and its sources, to identify a list of kernels. */
enum healcl_status manifest_add_identity(const struct reader *reader, const cJSON *object,
                                         const struct vendor_kernel *kernel, uint64_t *identity);

/* Loads a library. This runs its initialization code. */
enum healcl_status manifest_load_library(const struct reader *reader,
                                         const struct pending *pending);

enum healcl_status manifest_read_kernel(struct reader *reader, const cJSON *object,
                                        const struct expression_names *names,
                                        struct vendor_kernel **made);

#endif
