/* What signals do to the program. */
#ifndef HEALCL_CLI_SIGNALS_H
#define HEALCL_CLI_SIGNALS_H

/*
 * SIGINT, SIGTERM and SIGHUP remove temporary files and end the program as they would without:
 * whoever waits for it sees the signal. One that is ignored, as under nohup, stays so.
 * SIGBUS in a mapped transcript, whose file was cut or whose disk failed: temporary files are
 * removed, a line tells of it, and the program exits with EXIT_REFUSED.
 * Memory that xmalloc cannot get: the same with EXIT_DEVICE.
 * SIGPIPE and SIGXFSZ: what is written fails instead, and is told as other failures to write.
 */
void signals_init(void);

/* To be called in a child that goes on as this program. */
void signals_forked(void);

/* A line has told of memory that ran out: what ends the program for it then says nothing. */
void signals_memory_is_told(void);

/* Takes away what progress of a process that is gone may have left on the terminal. */
void signals_clear_line(void);

#endif
