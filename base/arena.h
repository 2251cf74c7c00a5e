/* arena.h: memory that is freed all at once.
 *
 * The compiler has one arena for a compilation and one for each pass; the runtime one for each step's strings. Blocks
 * grow geometrically. Running out of memory ends the program (there is nothing sensible to compile without it), so
 * that callers need no error path. All memory is zeroed. Not safe for two threads at once.
 */
#ifndef TFC_BASE_ARENA_H
#define TFC_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct arena_block;
struct arena {
  struct arena_block *head;
  size_t total; /* bytes asked from the system */
};

void arena_init(struct arena *arena);
void arena_deinit(struct arena *arena);
/* `size` zeroed bytes, aligned to 16. */
void *arena_alloc(struct arena *arena, size_t size);
/* Aligned to `align`, a power of two. */
void *arena_alloc_aligned(struct arena *arena, size_t size, size_t align);
void *arena_copy(struct arena *arena, const void *data, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc((arena), sizeof(type) * (size_t)(count)))

#endif
