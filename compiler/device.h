/* device.h: device names as TensorFlow writes them, full or partial: "/job:ps/replica:0/task:1/device:CPU:0", "/cpu:0".
 *
 * Parts may come in any order, the last of a kind wins; `*` leaves a part open, "" and "/" leave all open. Texts are kept
 * in the arena given. One thread.
 */
#ifndef TFC_COMPILER_DEVICE_H
#define TFC_COMPILER_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/status.h"

#define DEVICE_OPEN (-1)

struct device_spec {
  const char *job, *type;    /* NULL: open */
  int64_t replica, task, id; /* DEVICE_OPEN, or 0 .. INT32_MAX */
};

#define DEVICE_SPEC_OPEN ((struct device_spec){NULL, NULL, DEVICE_OPEN, DEVICE_OPEN, DEVICE_OPEN})

/* False when the text is no device name; `out` is then open. */
bool device_parse(struct arena *arena, const char *text, struct device_spec *out);
/* The canonical text: only the parts that are set; an open id of a set type is `*`. */
const char *device_text(struct arena *arena, const struct device_spec *spec);

bool device_equal(const struct device_spec *a, const struct device_spec *b);
/* No part is set in both to different values. */
bool device_compatible(const struct device_spec *a, const struct device_spec *b);
/* Whether a device, all of whose parts are set, is one that the pattern names. */
bool device_matches(const struct device_spec *pattern, const struct device_spec *device);
/* Sets in `into` what is set in `from`. */
void device_override(struct device_spec *into, const struct device_spec *from);
/* Sets in `into` what is set in either. INVALID_ARGUMENT `Cannot merge devices with incompatible tasks: 'A' and 'B'` when
 * they differ, `into` is then unchanged; with `soft`, types and ids that differ are left open instead. */
status device_merge(struct arena *arena, const struct device_spec *from, bool soft, struct device_spec *into);

#endif
