/* commands.h: what tfc does beside building. */
#ifndef TFC_COMPILER_COMMANDS_H
#define TFC_COMPILER_COMMANDS_H

#include "compiler/build.h"

/* Prints what options.emit names. */
status command_emit(struct build *build);
/* Prints every unsupported op at once, the placement, each task's memory and traffic; fails when it would not build. */
status command_check(struct build *build);
/* Prints placeholders, variables, signatures, collections, and entries ready to be named. */
status command_show(struct build *build);
void command_ops(void);
/* Makes a CA in the folder, unless it has one, and a certificate and key of it for each task of the cluster file, and for clients. */
status command_certs(const char *cluster_path, const char *folder);
/* Prints what a built task holds. */
status command_inspect(const char *path);
/* Asks the task that listens at an address what it is at, and prints what it says. */
struct status_request {
  const char *address; /* "host:port", "[v6]:port", "unix:PATH" */
  bool is_json;
  const char *tls_cert, *tls_key, *tls_ca; /* files, all or none */
};
/* UNAVAILABLE: nobody answers there. */
status command_status(const struct status_request *request);
/* Starts every task of a build on this machine; the exit code of the first that failed. */
int command_run(const char *dir, int argc, char **argv);

#endif
