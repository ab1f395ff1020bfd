/*
 * A registry of this process's files. Temporary files must be removed when it ends. Mapped files
 * can lose pages, which causes a signal. Inputs must not be overwritten. Signal handlers may query
 * the first two. A file that does not fit into a table is not noted.
 */
#ifndef HEALCL_CORE_REGISTRY_H
#define HEALCL_CORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- temporary files ---- */

/* Creates a file that does not exist yet, for reading and writing, and notes it. SIGINT, SIGTERM
 * and SIGHUP cannot come between the two. Returns a descriptor, or -1 with errno; EEXIST if the
 * file exists. */
int temporary_create(const char *path, mode_t mode);

/* Call it when the file has been removed or renamed to its final name. */
void temporary_forget(const char *path);

/* Removes all temporary files. Async-signal-safe. */
void temporary_remove_all(void);

/* Makes this process and those that it forks from now on share one table. The last one alive can
 * then remove the files of all. Returns false when out of memory. */
bool registry_share(void);

/* ---- calls that may never return ---- */

/* Call these before and after a driver call. The name must live as long as the program. If several
 * threads call, the last to begin counts. waiting_end returns the call's result. */
void waiting_begin(const char *call);
int32_t waiting_end(int32_t result);

/* Names the driver of the following calls. */
void waiting_driver(const char *name);

/* Writes the pending call and its driver into text: "clBuildProgram of 'PoCL'". Returns whether the
 * call has been running for at least `nanoseconds`, in this process or one that shares its
 * tables. */
enum { WAITING_SIZE = 160 };
bool waiting_for(uint64_t nanoseconds, char text[WAITING_SIZE]);

/* ---- trials ---- */

/* Notes that the current trial may end the process, and the number of the trial after it. 0: no
 * trial runs. */
void trial_note(uint32_t next);

/* The number of the trial to begin with: 0, unless a trial has ended a process. */
uint32_t trial_first(void);

/* Call it when a process that shares the tables has ended. Returns whether a trial ended it and, if
 * goes_on, makes the next process begin after that trial. */
bool trial_end(bool goes_on);

/* ---- mapped files ---- */

/* path: the file's name for messages, cut after 4095 bytes. */
void mapping_note(const void *begin, size_t length, const char *path);
void mapping_forget(const void *begin);

/* The path of the mapping that contains an address, or NULL. It lives until that mapping is
 * forgotten. Async-signal-safe. */
const char *mapping_path(const void *address);

/* ---- inputs ---- */

/* Notes a file that is being read. about: its fstat result. If it is NULL, the path is looked up,
 * and nothing is noted unless it leads to a regular file. Returns false if memory ran out. */
bool input_note(const char *path, const struct stat *about);

/* Removes one such note, when the file is no longer read. */
void input_forget(const struct stat *about);

/* Whether a path leads to an input, compared by device and inode. name: the path under which the
 * input was noted, cut if too long. Timestamps detect an inode that has been reused for another
 * file. */
enum { INPUT_NAME_SIZE = 481 };
bool input_at(const char *path, char name[INPUT_NAME_SIZE]);

#endif
