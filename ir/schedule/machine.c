/* machine.c: machines by name; see machine.h. LLVM's C interface does not tell what a named CPU has, so names are looked at. */
#include "ir/schedule/machine.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define KB INT64_C(1024)
#define MB (1024 * KB)

#define WIDE_AT(kind, fmas, pairs, loads, l1, l2, l3, ...) \
  { kind, 4, 64, 32, true, fmas, pairs, loads, {(l1)*KB, (l2)*KB, (l3)*KB, INT64_MAX}, {__VA_ARGS__}, false, 0 }
/* Rates of 512-bit servers of several makers lie within a quarter of these, but for those with their own; the last level is what a core has
 * of it when all work. */
#define WIDE(kind, fmas, pairs, l1, l2, l3) WIDE_AT(kind, fmas, pairs, 2, l1, l2, l3, 128, 48, 10, 4)
#define HALF_AT(kind, l1, l2, l3, ...) \
  { kind, 3, 32, 16, true, 2, 0, 2, {(l1)*KB, (l2)*KB, (l3)*KB, INT64_MAX}, {__VA_ARGS__}, false, 0 }
#define HALF(kind, l1, l2, l3) HALF_AT(kind, l1, l2, l3, 64, 32, 12, 6)
#define OLD(kind, level) \
  { kind, level, 16, 16, false, 1, 0, 2, {32 * KB, 256 * KB, 2 * MB, INT64_MAX}, {32, 16, 8, 4}, false, 0 }

/* The first whose name is part of the CPU's. Sizes of caches are their makers'; what levels deliver was measured on servers with 512-bit
 * vectors and on a Zen 3: the other 256-bit rows have what is usual. */
static const struct machine named[] = {
  WIDE("avx512", 2, 0, 32, 1024, 2048),
  WIDE("v4", 2, 0, 32, 1024, 2048),
  WIDE_AT("icelake", 2, 0, 1.13, 48, 1280, 1536, 128, 48, 10, 4), /* measured on a server that others share */
  WIDE("tigerlake", 1, 0, 48, 1280, 3072),
  WIDE("rocketlake", 1, 0, 48, 512, 2048),
  WIDE("cannonlake", 1, 0, 32, 256, 2048),
  WIDE("cascadelake", 2, 0, 32, 1024, 1408),
  WIDE("cooperlake", 2, 1, 32, 1024, 1408),
  WIDE("sapphirerapids", 2, 1, 48, 2048, 1920),
  WIDE("emeraldrapids", 2, 1, 48, 2048, 2560),
  WIDE("graniterapids", 2, 1, 48, 2048, 3072),
  WIDE("diamondrapids", 2, 1, 48, 2048, 3072),
  WIDE_AT("znver4", 1, 1, 2, 32, 1024, 4096, 128, 48, 16, 6),
  WIDE_AT("znver5", 2, 2, 2, 48, 1024, 4096, 128, 64, 30, 12),
  HALF("haswell", 32, 256, 2048),
  HALF("broadwell", 32, 256, 2048),
  HALF("skylake", 32, 256, 2048),
  HALF("alderlake", 48, 1280, 3072),
  HALF("raptorlake", 48, 2048, 3072),
  HALF_AT("znver3", 32, 512, 4096, 64, 32, 16, 8),
};
/* Whole names. */
static const struct machine narrow[] = {OLD("x86-64", 1), OLD("x86-64-v2", 2), OLD("generic", 1), OLD("nehalem", 2), OLD("westmere", 2),
                                        OLD("core2", 1),  OLD("penryn", 1),    OLD("nocona", 1),  OLD("k8", 1)};
static const struct machine usual = HALF("x86-64-v3", 32, 512, 2048);

/* ---- the machine at hand ---- */

/* Bytes of a level of the first core's data caches; 0: the system does not say. */
static int64_t cache_bytes(int level) {
  for (int index = 0; index < 8; index++) {
    char path[96], type[32] = "";
    long long size = 0;
    int at = 0;
    const char *const files[] = {"level", "type", "size"};
    for (int i = 0; i < 3; i++) {
      snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, files[i]);
      FILE *file = fopen(path, "r");
      if (!file)
        return 0;
      int got = i == 0 ? fscanf(file, "%d", &at) : i == 1 ? fscanf(file, "%31s", type) : fscanf(file, "%lld", &size); /* in K */
      fclose(file);
      if (got != 1)
        return 0;
    }
    if (at == level && strcmp(type, "Instruction") != 0)
      return size * KB;
  }
  return 0;
}
static struct machine native;
static pthread_once_t native_once = PTHREAD_ONCE_INIT;

/* Of CPUs with wide vectors, those that have rates of their own, or start one multiply-add of them a cycle; any other starts two. Virtual
 * machines may show a server's CPU by the number of a smaller one, which has no bfloat16. */
static const char *wide_name(void) {
  return __builtin_cpu_is("amdfam19h")        ? "znver4"
       : __builtin_cpu_is("amd")              ? "znver5" /* older ones have none */
       : __builtin_cpu_supports("avx512bf16") ? "avx512"
       : __builtin_cpu_is("tigerlake")        ? "tigerlake"
       : __builtin_cpu_is("rocketlake")       ? "rocketlake"
       : __builtin_cpu_is("cannonlake")       ? "cannonlake"
       : __builtin_cpu_is("icelake-server")   ? "icelake"
                                              : "avx512";
}
/* Of those with half as wide ones, the one with rates of its own. */
static const struct machine *half_machine(void) { return __builtin_cpu_is("znver3") ? machine_find("znver3") : &usual; }
static void find_native(void) {
  __builtin_cpu_init();
  bool wide = __builtin_cpu_supports("avx512vl"), half = __builtin_cpu_supports("avx2");
  native = wide ? *machine_find(wide_name()) : half ? *half_machine() : narrow[0];
  native.name = "native";
  if (!__builtin_cpu_supports("avx512bf16"))
    native.pair_rate = 0;
  else if (native.pair_rate == 0)
    native.pair_rate = 1;
  if (!wide && !half)
    native.level = __builtin_cpu_supports("sse4.2") ? 2 : 1;
  for (int level = LEVEL_L1; level <= LEVEL_L3; level++) {
    int64_t bytes = cache_bytes(level + 1);
    native.bytes[level] = bytes > 0 ? bytes : native.bytes[level];
  }
  cpu_set_t usable;
  native.cores = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 0;
}

const struct machine *machine_find(const char *cpu) {
  if (!cpu || strcmp(cpu, "native") == 0) {
    pthread_once(&native_once, find_native);
    return &native;
  }
  for (size_t i = 0; i < sizeof named / sizeof *named; i++)
    if (strstr(cpu, named[i].name))
      return &named[i];
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
    if (strcmp(cpu, narrow[i].name) == 0)
      return &narrow[i];
  return &usual;
}
struct machine machine_strict(const struct machine *machine) {
  struct machine strict = *machine;
  strict.has_fma = false;
  strict.is_strict = true;
  return strict;
}
struct machine machine_narrow(const struct machine *machine, uint32_t vector_bytes) {
  struct machine narrow_one = *machine;
  if (vector_bytes >= machine->vector_bytes)
    return narrow_one;
  narrow_one.vector_bytes = vector_bytes;
  narrow_one.fma_rate = machine->fma_rate < 2 ? 2 : machine->fma_rate;
  return narrow_one;
}
