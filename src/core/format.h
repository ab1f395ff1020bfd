#ifndef HEALCL_CORE_FORMAT_H
#define HEALCL_CORE_FORMAT_H

#include <stdarg.h>
#include <stdio.h>

/* Formats the arguments of a function like printf, those after `format`. */
#define FORMAT_INTO(text, size, format)                  \
    do {                                                 \
        va_list arguments_;                              \
        va_start(arguments_, format);                    \
        (void)vsnprintf(text, size, format, arguments_); \
        va_end(arguments_);                              \
    } while (0)

#endif
