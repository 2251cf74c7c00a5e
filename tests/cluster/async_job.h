/* async_job.h: a ps and two workers that train asynchronously (golden/models/async_2workers), built by tfc into `out` of the test's folder
 * and started anew in each test, over Unix sockets there. */
#ifndef TFC_TESTS_CLUSTER_ASYNC_JOB_H
#define TFC_TESTS_CLUSTER_ASYNC_JOB_H

#include "tests/support/feed_file.h"
#include "tests/support/process.h"

#define MODEL SOURCE_DIR "/tests/golden/models/async_2workers/graph.pb"
#define LONG "100000000" /* steps: as good as for ever */

static inline struct process *task(const char *name, const char *words) {
  char program[64];
  snprintf(program, sizeof program, "out/%s", name);
  return process_start(program, words);
}

/* The words of these steps; up to four calls' are there at a time, as with `with`. */
static inline const char *train(const char *steps) {
  static char turns[4][256];
  static int turn;
  char *words = turns[turn++ % 4];
  snprintf(words, sizeof turns[0], "--entry train --feed x=x.npy --feed label=label.npy --batch 16 --steps %s", steps);
  return words;
}

static inline const char *with(const char *options, const char *phases) {
  static char turns[4][1024];
  static int turn;
  char *words = turns[turn++ % 4];
  snprintf(words, sizeof turns[0], "%s %s", options, phases);
  return words;
}

/* Makes the folder, with what a build and the tasks read: cluster.json and the feeds. */
static inline bool job_folder(void) {
  char path[TEMP_PATH_SIZE + 16];
  if (!temp_folder(folder))
    return false;
  feed_write(folder, "x", DTYPE_FLOAT, (struct shape){2, {64, 64}});
  feed_write(folder, "label", DTYPE_INT32, (struct shape){1, {64}});
  snprintf(path, sizeof path, "%s/cluster.json", folder);
  FILE *file = fopen(path, "w");
  fprintf(file, "{\"ps\": [\"unix:%s/p\"], \"worker\": [\"unix:%s/a\", \"unix:%s/b\"]}", folder, folder, folder);
  return fclose(file) == 0;
}

static inline int job_clean(void **state) {
  process_kill_all(state);
  return temp_folder_remove(folder);
}

#endif
