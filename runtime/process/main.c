/* main.c: where an executable begins: the program and the kernels that are linked in. */
#include "runtime/process/task_main.h"

int main(int argc, char **argv) { return task_main((const struct program *)tfc_program, tfc_kernels, argc, argv); }
