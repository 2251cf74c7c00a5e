/* checkpoint_write.h: writes a TensorBundle (checkpoint.h) that TensorFlow reads, and merges those of several tasks into one.
 * Files get their names when they are complete: a failure leaves an earlier checkpoint as it was. One thread. */
#ifndef TFC_BASE_CHECKPOINT_WRITE_H
#define TFC_BASE_CHECKPOINT_WRITE_H

#include "base/checkpoint.h"

struct checkpoint_writer;

/* Makes the folder of the prefix when it is missing. */
status checkpoint_writer_create(const char *prefix, struct checkpoint_writer **out);
/* Keys may come in any order, each once (INVALID_ARGUMENT). */
status checkpoint_writer_add(struct checkpoint_writer *writer, const char *key, const struct tensor *tensor);
/* A part of a tensor of shape `whole`; parts of one key may come from several writers whose files are then merged. */
status checkpoint_writer_add_slice(struct checkpoint_writer *writer, const char *key, const struct shape *whole,
                                   const struct checkpoint_slice *slice, const struct tensor *tensor);
/* What readers other than this one pass over: bytes in the index (checkpoint_note), at most CHECKPOINT_NOTE_BYTES_MAX of them
 * (RESOURCE_EXHAUSTED). They are copied. */
status checkpoint_writer_set_note(struct checkpoint_writer *writer, const void *data, size_t size);
/* Completes the files; they and their names are on the disk then. Destroys the writer in any case. */
status checkpoint_writer_close(struct checkpoint_writer *writer);
/* Gives up and removes what was written. Accepts NULL. */
void checkpoint_writer_destroy(struct checkpoint_writer *writer);

/* A checkpoint that is complete gets another note, on the disk when it returns OK; a failure leaves it as it was. */
status checkpoint_replace_note(const char *prefix, const void *note, size_t size);

/* The data files of all `prefixes` become those of `prefix`, their indexes one. */
status checkpoint_merge(const char *const *prefixes, uint32_t count, const char *prefix, bool missing_is_fine);

#endif
