/* variable_slice.h: which part of a partitioned variable a variable is. */
#ifndef TFC_COMPILER_VARIABLE_SLICE_H
#define TFC_COMPILER_VARIABLE_SLICE_H

#include "compiler/build.h"

/* TensorFlow's partitioners call the parts of `w` w/part_0, w/part_1 ..., those of its optimizer's slots w/part_0/Adam
 * ...; checkpoints hold the whole, `w` and `w/Adam`. The slice in checkpoints' words ("10 4 0,5:0,4"), in the build's
 * arena; "": the variable is no such part. */
const char *variable_slice(struct build *build, uint32_t number);

#endif
