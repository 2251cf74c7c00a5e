/* build_json.h: build.json: what a build made, for people and scripts (contract, section 4). */
#ifndef TFC_COMPILER_BUILD_JSON_H
#define TFC_COMPILER_BUILD_JSON_H

#include "compiler/build.h"

/* The text, ending with a line break, in the arena. The same build gives the same bytes. */
const char *build_json_text(const struct build *build, struct arena *arena);

#endif
