/* test_replica_init.c: what each replica has of its own is initialised by each, what they share by the chief alone. */
#include "base/npy.h"
#include "tests/support/shell.h"

#define TFC BINARY_DIR "/tfc"
#define STEPS "--timeout 20 --entry step --feed x=x.npy --steps 50 "

/* The ps has 10 and four for each step of both: the first value was not given once more. */
static void a_replica_that_begins_late_leaves_what_is_shared(void **state) {
  (void)state;
  int code = run("out/ps_0 & ps=$!; out/worker_0 " STEPS "--fetch shared=- >/dev/null || exit; "
                 "out/worker_1 " STEPS "| tail -n 2 && wait $ps");
  if (code != 0)
    test_fail("%d\n%s", code, said);
  must_say("shared = 410");
  must_say("own = [201 205 207]");
}

static status ones_write(void) {
  char path[TEMP_PATH_SIZE + 16];
  struct tensor *ones;
  TRY(tensor_copy_in(DTYPE_FLOAT, &(struct shape){1, {4}}, (float[]){1, 1, 1, 1}, &ones));
  snprintf(path, sizeof path, "%s/x.npy", folder);
  status result = npy_write(path, ones);
  tensor_release(ones);
  return result;
}

static int build(void **state) {
  char command[4096];
  (void)state;
  if (!temp_folder(folder) || ones_write() != OK)
    return 1;
  snprintf(command, sizeof command,
           "cd %s && echo '{\"ps\": [\"unix:%s/p\"], \"worker\": [\"unix:%s/v\", \"unix:%s/w\"]}' >cluster.json && " TFC
           " build " SOURCE_DIR
           "/tests/golden/models/replica_bare_init/graph.pb --cluster cluster.json --replicate worker --entry 'init: -> | init' "
           "--entry 'step: x -> own, shared' -o out --quiet",
           folder, folder, folder, folder);
  return system(command) != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_replica_that_begins_late_leaves_what_is_shared)};
  return cmocka_run_group_tests(tests, build, folder_clean);
}
