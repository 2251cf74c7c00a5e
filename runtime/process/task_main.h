/* task_main.h: a task's program from its command line to its exit code. Once in a process; tests/simulator has several processes in one. */
#ifndef TFC_RUNTIME_PROCESS_TASK_MAIN_H
#define TFC_RUNTIME_PROCESS_TASK_MAIN_H

#include "runtime/program/program.h"

/* The exit code. Prints errors itself. */
int task_main(const struct program *program, const struct kernel_code *kernels, int argc, char **argv);

#endif
