/* limits.h: every cap in one place, each with its reason. */
#ifndef TFC_BASE_LIMITS_H
#define TFC_BASE_LIMITS_H

#define LIMIT_RANK 32                     /* NumPy's arrays stopped there; TensorFlow's tensors may have 254, most of its kernels take 8 */
#define LIMIT_ELEMENTS (INT64_C(1) << 40) /* products of dimensions above this are refused before memory is asked for */
#define LIMIT_GRAPH_BYTES (INT64_C(2) << 30) /* protobuf itself stops at 2 GiB */
#define LIMIT_NESTING 64                     /* depth of attributes and functions: TFSA-2021-103 was a stack overflow there */
#define LIMIT_NODES 4000000                  /* ids are 32 bits; a real graph has fewer than a million nodes */
#define LIMIT_NODE_INPUTS 65536              /* AddN and Pack of unrolled nets have thousands */
#define LIMIT_CONTENT 4096                   /* elements of an integer tensor that is followed symbolically while compiling */
#define LIMIT_FOLD_BYTES (1 << 20)           /* a folded constant may not be larger: it would only move memory into the program */
#define LIMIT_TASKS 4096                     /* tasks of a cluster */
#define LIMIT_STACK_BYTES (8u << 20)         /* of a thread that runs kernels, at least: Linux's usual limit, twice what they keep there */

#endif
