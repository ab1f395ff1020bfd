/*
 * A compiler that gets one thing wrong: preloaded (LD_PRELOAD), it builds every program with the
 * environment's FAULTY_FROM replaced by FAULTY_TO.
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef cl_program create_function(cl_context, cl_uint, const char **, const size_t *, cl_int *);

/* The text with the first `from` replaced, in new memory; NULL where it is not in there. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *changed = at ? malloc(strlen(text) + strlen(to) + 1) : NULL;
    if (!changed)
        return NULL;
    size_t before = (size_t)(at - text);
    memcpy(changed, text, before);
    strcpy(changed + before, to);
    strcat(changed, at + strlen(from));
    return changed;
}

enum { TEXTS_MAX = 16 };

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts,
                                     const size_t *lengths, cl_int *code)
{
    static create_function *create;
    const char *from = getenv("FAULTY_FROM"), *to = getenv("FAULTY_TO");
    const char *changed[TEXTS_MAX];
    char *owned[TEXTS_MAX] = {NULL};
    if (!create)
        *(void **)&create = dlsym(RTLD_NEXT, "clCreateProgramWithSource");
    if (!from || !to || lengths || count > TEXTS_MAX)
        return create(context, count, texts, lengths, code);
    for (cl_uint i = 0; i < count; i++) {
        owned[i] = replaced(texts[i], from, to);
        changed[i] = owned[i] ? owned[i] : texts[i];
    }
    cl_program program = create(context, count, changed, NULL, code);
    for (cl_uint i = 0; i < count; i++)
        free(owned[i]);
    return program;
}
