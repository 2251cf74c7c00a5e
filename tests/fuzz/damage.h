/* damage.h: a corpus of files, read as they are, cut short, and damaged: bytes changed, cut out, put in, repeated, joined with another
 * file. The damage is drawn from a fixed seed, so that a failure comes again. TFC_FUZZ_ITERATIONS: how many damaged files for each good one
 * (default 2000). */
#ifndef TFC_TESTS_DAMAGE_H
#define TFC_TESTS_DAMAGE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "tests/support/test.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/"
#define CORPUS_MAX 16
#define FILE_BYTES_MAX (64 << 10)
#define SECONDS_MAX 20 /* for one file, under a sanitizer on a busy machine */

struct bytes {
  size_t size;
  unsigned char data[FILE_BYTES_MAX];
};

static uint64_t random_state;

static uint64_t random_next(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static size_t random_below(size_t bound) { return bound ? (size_t)(random_next() % bound) : 0; }

static void bytes_replace(struct bytes *file, size_t at, size_t removed, const unsigned char *data, size_t size) {
  if (at > file->size || removed > file->size - at || file->size - removed + size > FILE_BYTES_MAX)
    return;
  unsigned char copy[4096];
  size = size < sizeof copy ? size : sizeof copy;
  if (size)
    memcpy(copy, data, size); /* it may come from the file itself */
  memmove(file->data + at + size, file->data + at + removed, file->size - at - removed);
  if (size)
    memcpy(file->data + at, copy, size);
  file->size += size - removed;
}

static void damage_once(struct bytes *file, const struct bytes *other) {
  static const unsigned char special[] = {0, 1, 2, 0x0a, 0x12, 0x22, 0x7f, 0x80, 0xff, ' ', '{', '"', '-', '9'};
  static const unsigned char huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  size_t at = random_below(file->size), from = random_below(other->size), length = random_below(64);
  if (!file->size)
    return;
  switch (random_below(9)) {
  case 0: file->data[at] ^= (unsigned char)(1 << random_below(8)); break;
  case 1: file->data[at] = special[random_below(sizeof special)]; break;
  case 2: file->data[at] = (unsigned char)random_next(); break;
  case 3: file->data[at]++; break;
  case 4: bytes_replace(file, at, length, NULL, 0); break;
  case 5: bytes_replace(file, at, 0, file->data + from % file->size, length < file->size - from % file->size ? length : 1); break;
  case 6: bytes_replace(file, at, 0, other->data + from, length < other->size - from ? length : other->size - from); break;
  case 7: bytes_replace(file, at, 1, huge, 1 + random_below(sizeof huge)); break;
  default: file->size = at; break;
  }
}

/* ---- a corpus ---- */

struct corpus_file {
  const char *name;
  bool (*read)(const struct bytes *file); /* whether the bytes were good */
};
static struct bytes originals[CORPUS_MAX], damaged;

static void file_load(const char *name, struct bytes *out) {
  char path[512];
  snprintf(path, sizeof path, CORPUS "%s", name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  out->size = fread(out->data, 1, FILE_BYTES_MAX, f);
  fclose(f);
  assert_true(out->size > 0);
}

static void corpus_load(const struct corpus_file *corpus, size_t count) {
  assert_true(count <= CORPUS_MAX);
  for (size_t i = 0; i < count; i++)
    file_load(corpus[i].name, &originals[i]);
}

static void corpus_read(const struct corpus_file *corpus, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!corpus[i].read(&originals[i]))
      test_fail("%s: %s", corpus[i].name, status_text());
}

static void read_damaged(const struct corpus_file *file) {
  alarm(SECONDS_MAX);
  (void)file->read(&damaged);
  alarm(0);
}

static void corpus_damage(const struct corpus_file *corpus, size_t count) {
  const char *text = getenv("TFC_FUZZ_ITERATIONS");
  long iterations = text ? strtol(text, NULL, 10) : 2000;
  for (size_t i = 0; i < count; i++) {
    random_state = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
    for (long k = 0; k < iterations; k++) {
      damaged = originals[i];
      for (size_t n = 1 + random_below(4); n > 0; n--)
        damage_once(&damaged, &originals[random_below(count)]);
      read_damaged(&corpus[i]);
    }
  }
}

/* Every beginning of a file, of a long one about `most`. */
static void corpus_cut(const struct corpus_file *corpus, size_t count, size_t most) {
  for (size_t i = 0; i < count; i++)
    for (size_t size = 0; size < originals[i].size; size += 1 + originals[i].size / most) {
      damaged.size = size;
      memcpy(damaged.data, originals[i].data, size);
      read_damaged(&corpus[i]);
    }
}

#endif
