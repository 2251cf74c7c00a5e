/* bundle.h: the folder that a build makes: one executable for each task, and build.json. */
#ifndef TFC_COMPILER_BUNDLE_H
#define TFC_COMPILER_BUNDLE_H

#include "compiler/build.h"

/* Emits, compiles and links every task (in processes of their own, as many at a time as there are cores) into a folder
 * beside options.output_dir, which then takes its place. On failure an earlier output_dir is as it was. */
status bundle_write(struct build *build);

#endif
