/* stacks.h: room on the stacks of threads for what kernels keep there. */
#ifndef TFC_RUNTIME_STACKS_H
#define TFC_RUNTIME_STACKS_H

/* Scheduled kernels keep what stays in the second cache on the stack of the thread that runs them: up to about twice that cache (2 MB on
 * some servers), beside copies of factors. Where limits of the process leave less than LIMIT_STACK_BYTES, as a small `ulimit -s` does, or
 * `unlimited`, for which the C library takes 2 MB a thread, all threads that begin from now on get as much, and so does the first one as
 * far as the hard limit allows. To be called once, before there are others. */
void stacks_make_room(void);

#endif
