/* cuda_device.h: for tests: the first CUDA device of this machine, by the driver's library, which is loaded when it is asked for. */
#ifndef TFC_TESTS_CUDA_DEVICE_H
#define TFC_TESTS_CUDA_DEVICE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DEVICE_THREADS 128
#define DEVICE_BLOCKS 24

struct cuda_device {
  int (*init)(unsigned flags);
  int (*get)(int *device, int number);
  int (*attribute)(int *value, int attribute, int device);
  int (*retain)(void **context, int device);
  int (*set_current)(void *context);
  int (*load)(void **module, const void *image);
  int (*find)(void **function, void *module, const char *name);
  int (*allocate)(uint64_t *memory, size_t bytes);
  int (*release)(uint64_t memory);
  int (*to_device)(uint64_t to, const void *from, size_t bytes);
  int (*from_device)(void *to, uint64_t from, size_t bytes);
  int (*launch)(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                void **args, void **extra);
  int (*synchronize)(void);
  int (*unload)(void *module);
  char gpu[16]; /* "sm_90" */
};

/* NULL: it is there; else why it is not. */
static inline const char *cuda_device_open(struct cuda_device *d) {
  static const char *const names[] = {"cuInit",           "cuDeviceGet",      "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
                                      "cuCtxSetCurrent",  "cuModuleLoadData", "cuModuleGetFunction",  "cuMemAlloc_v2",
                                      "cuMemFree_v2",     "cuMemcpyHtoD_v2",  "cuMemcpyDtoH_v2",      "cuLaunchKernel",
                                      "cuCtxSynchronize", "cuModuleUnload"};
  enum { MAJOR = 75, MINOR = 76 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_.. */
  void *library = dlopen("libcuda.so.1", RTLD_NOW), **slots = (void **)d, *context;
  int device, major = 0, minor = 0;
  if (!library)
    return "there is no libcuda.so.1 on this machine";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!(slots[i] = dlsym(library, names[i])))
      return "libcuda.so.1 lacks a function";
  if (d->init(0) != 0 || d->get(&device, 0) != 0)
    return "there is no CUDA device";
  if (d->retain(&context, device) != 0 || d->set_current(context) != 0)
    return "the CUDA device has no context";
  d->attribute(&major, MAJOR, device);
  d->attribute(&minor, MINOR, device);
  snprintf(d->gpu, sizeof d->gpu, "sm_%d%d", major, minor);
  return NULL;
}

static inline void device_must(int result, const char *what) {
  if (result == 0)
    return;
  fprintf(stderr, "CUDA: %s: error %d\n", what, result);
  exit(1);
}
static inline uint64_t device_block(const struct cuda_device *d, size_t bytes) {
  uint64_t memory;
  device_must(d->allocate(&memory, bytes + 64), "memory");
  return memory;
}

#endif
