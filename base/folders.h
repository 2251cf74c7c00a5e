/* folders.h: folders for files that are to be written. */
#ifndef TFC_BASE_FOLDERS_H
#define TFC_BASE_FOLDERS_H

#include "base/status.h"

/* Makes the one above a path, as TensorFlow does: NOT_FOUND where that which it would lie in is missing, FAILED_PRECONDITION where that is
 * none. Another reason why there is none shows when the file is opened. */
status folder_make_above(const char *path);
/* Makes those above a path, as far as they are missing. What is in the way shows when the file is opened. */
void folders_make_above(const char *path);

#endif
