/*
 * Files of this process: temporary ones, which are to be gone when it ends, mapped ones, whose lost
 * pages cause a signal, and inputs, which nothing that is written may replace. A program that
 * handles signals can ask for the first two inside of its handlers. What does not fit is not noted.
 */
#ifndef HEALCL_CORE_REGISTRY_H
#define HEALCL_CORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- temporary files ---- */

/* Creates a file that is not there yet for reading and writing, and notes it. Neither is without
 * the other for SIGINT, SIGTERM and SIGHUP. Returns a descriptor, or -1 with errno, EEXIST where
 * the file is there. */
int temporary_create(const char *path, mode_t mode);

/* To be called when it has been removed, or has got its name. */
void temporary_forget(const char *path);

/* Removes all temporary files. Async-signal-safe. */
void temporary_remove_all(void);

/* Makes one table of what this process and those that it forks from now on note: the one that is
 * left can remove the files of all. Returns false without memory. */
bool registry_share(void);

/* ---- calls that may never return ---- */

/* Around a call, whose name lives as long as the program. Of several threads the last to begin
 * counts. */
void waiting_begin(const char *call);
void waiting_end(void);

/* Names the driver of the calls that follow. */
void waiting_driver(const char *name);

/* Writes "clBuildProgram of 'PoCL'" about the call. Returns whether it has not returned for so
 * long, in this process or one that shares its tables. */
enum { WAITING_SIZE = 160 };
bool waiting_for(uint64_t nanoseconds, char text[WAITING_SIZE]);

/* ---- trials ---- */

/* Notes that the process may end by what it tries now, and with which number the next one begins;
 * 0: it tries nothing. */
void trial_note(uint32_t next);

/* The number to begin with: 0, but where a process has ended by a trial. */
uint32_t trial_first(void);

/* To be called when a process that shares its tables has ended. Returns whether that was by a trial
 * and, with goes_on, the next process begins behind it. */
bool trial_end(bool goes_on);

/* ---- mapped files ---- */

/* path: as a message names the file; it is cut after 480 bytes. */
void mapping_note(const void *begin, size_t length, const char *path);
void mapping_forget(const void *begin);

/* The path of the mapping that holds an address, or NULL; lives until that is forgotten.
 * Async-signal-safe. */
const char *mapping_path(const void *address);

/* ---- inputs ---- */

/* Notes a file that is read. about: what fstat says of it; NULL: the path is looked up, and nothing
 * noted if it does not lead to a regular file. Returns false if memory ran out. */
bool input_note(const char *path, const struct stat *about);

/* Forgets one such note: nothing reads the file any more. */
void input_forget(const struct stat *about);

/* Whether a path leads to an input, by device and inode; name: the path under which it was noted,
 * cut where it is longer. An inode that another file has now is told by its time. */
enum { INPUT_NAME_SIZE = 481 };
bool input_at(const char *path, char name[INPUT_NAME_SIZE]);

#endif
