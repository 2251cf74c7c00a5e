/* kernel_timer.h: for benches: kernels compiled for this machine and timed, beside the peak of one core. One thread calls. */
#ifndef TFC_BENCH_KERNEL_TIMER_H
#define TFC_BENCH_KERNEL_TIMER_H

#include "ir/kernel/kernel.h"
#include "runtime/program/program.h"

#define KERNEL_BUFFERS 16 /* of a kernel */
#define THREADS_MAX 16

double seconds_now(void);  /* of a clock that only grows */
double measure_peak(void); /* GFLOP/s of one core, by its thread's own clock: independent fused multiply-adds in registers */

/* The code of `count` kernels with distinct names, there until the process ends; NULL, with a word on stderr, where it cannot be made. */
const struct kernel_code *compile_kernels(struct kernel *const *kernels, uint32_t count);

/* sizes: of the kernel's size parameters, by their numbers; NULL where it has none. */
int64_t buffer_elements(const struct kernel *k, uint32_t buffer, const int64_t *sizes);
/* On 1 to THREADS_MAX threads. seconds[count]: of the fastest of at least twelve calls of each code, over random floats, for `budget`
 * seconds each: in turn, round after round, so that what else happens on the machine happens to all. The codes are of `k`, or of scheduled
 * kernels of it. */
void best_seconds(const struct kernel *k, const struct kernel_code *codes, uint32_t count, const int64_t *sizes, int threads, double budget,
                  double *seconds);

#endif
