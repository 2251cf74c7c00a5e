/* pages.h: memory for elements.
 *
 * Large blocks ask for pages of 2 MiB: rows of a matrix then lie in one page instead of one each, and caches ask ahead across them. Where
 * the system has none, or none is free, they are as others are. */
#ifndef TFC_BASE_PAGES_H
#define TFC_BASE_PAGES_H

#include <stddef.h>

/* On a multiple of 64, undefined at first; NULL: there is none. The caller frees it by free(). Safe for many threads. */
void *pages_create(size_t size);

#endif
