/* unicode_class.h: what the Unicode Character Database says of code points: their script and general category. Any thread. */
#ifndef TFC_RUNTIME_TEXT_UNICODE_CLASS_H
#define TFC_RUNTIME_TEXT_UNICODE_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a table whose entries begin with their first code point, in ascending order: the last one that begins there or before; else the first
 * one. */
size_t unicode_entry_from(const void *entries, size_t count, size_t size, int32_t code);
/* The script as ICU numbers it; -1 for what is no code point. */
int32_t unicode_script(int32_t code);
/* The general category, "Lu"; "Cn" where there is no character. */
const char *unicode_category(int32_t code);
/* Calls back for each range of a class: a category ("Lu"), a group of categories ("L"), a script ("Greek") or "Any". False, and
 * no call, for a name that is not known. */
bool unicode_class_each(const char *name, size_t size, void (*found)(void *self, int32_t low, int32_t high), void *self);

#endif
