/* folders.h: folders for files that are to be written. */
#ifndef TFC_BASE_FOLDERS_H
#define TFC_BASE_FOLDERS_H

/* Makes those above a path, as far as they are missing. What is in the way shows when the file is opened. */
void folders_make_above(const char *path);

#endif
