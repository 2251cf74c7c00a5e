/* What executables read at run time from anywhere, fed with damaged bytes (tests/fuzz/damage.h): pictures, sounds, records, compressed
 * files, JSON, CSV, tf.train.Example. Nothing may crash or hang. Checksums would stop nearly all damage at the door: they are mended. */
#include <sys/mman.h>
#include <zlib.h>

#include "base/crc32c.h"
#include "runtime/data/dataset.h"
#include "runtime/data/inflate.h"
#include "runtime/data/record_file.h"
#include "runtime/image/image.h"
#include "tests/fuzz/damage.h"

#define ELEMENTS_MAX 10000 /* more than a file of FILE_BYTES_MAX can hold of those that were */

/* ---- pictures: each reader gives whether the bytes were good ---- */

static struct bytes mended;

typedef status (*image_reader)(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out);

static bool read_image(const struct bytes *file, image_reader read, const struct image_wish *wish) {
  struct image image = {0};
  status result = read(file->data, file->size, wish, &image);
  if (result == OK)
    assert_true(image.frames > 0 && image.height > 0 && image.width > 0 && image.channels > 0 && image.channels <= 4);
  else
    assert_true(result == INVALID_ARGUMENT || result == RESOURCE_EXHAUSTED);
  free(image.pixels);
  return result == OK;
}

static uint32_t big_endian(const unsigned char *at) { return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]; }

static bool read_png(const struct bytes *file) {
  bool good = true;
  mended = *file;
  for (size_t at = 8; at + 12 <= mended.size;) {
    uint32_t size = big_endian(mended.data + at);
    if (size > mended.size - at - 12)
      break;
    uint32_t sum = (uint32_t)crc32(0, mended.data + at + 4, size + 4);
    for (int i = 0; i < 4; i++)
      mended.data[at + 8 + size + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
    at += 12 + size;
  }
  for (int channels = 0; channels <= 4; channels++)
    good &= read_image(&mended, image_read_png, &(struct image_wish){.channels = channels, .is_wide = channels % 2});
  return good;
}

static bool read_jpeg(const struct bytes *file) {
  static const struct image_wish wishes[] = {
    {.channels = 0, .ratio = 1, .acceptable_fraction = 1, .fancy_upscaling = true},
    {.channels = 3, .ratio = 4, .acceptable_fraction = 0.5f, .slow_dct = true},
    {.channels = 1, .ratio = 1, .acceptable_fraction = 0, .recover = true},
    {.channels = 3, .ratio = 1, .acceptable_fraction = 1, .crops = true, .crop = {3, 5, 9, 7}, .recover = true},
  };
  bool good = true;
  for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
    good &= read_image(file, image_read_jpeg, &wishes[i]);
  return good;
}

static bool read_gif(const struct bytes *file) {
  bool first = read_image(file, image_read_gif, &(struct image_wish){.first_frame_only = true});
  return read_image(file, image_read_gif, &(struct image_wish){0}) && first;
}

static bool read_bmp(const struct bytes *file) {
  bool four = read_image(file, image_read_bmp, &(struct image_wish){.channels = 4});
  return read_image(file, image_read_bmp, &(struct image_wish){0}) && four;
}

/* ---- host functions of one string, without attributes ---- */

status host_decode_wav(struct host_call *call);
status host_decode_json_example(struct host_call *call);
status host_parse_example_v2(struct host_call *call);
status host_parse_sequence_v2(struct host_call *call);

static bool call_host(host_function function, const struct tensor *inputs, uint32_t input_count, uint32_t output_count) {
  static const struct program_instr instr;
  struct tensor *outputs[8] = {0};
  struct host_call call = {.instr = &instr, .inputs = inputs, .input_count = input_count, .outputs = outputs, .output_count = output_count};
  status result = function(&call);
  assert_true(result == OK || result == INVALID_ARGUMENT || result == RESOURCE_EXHAUSTED);
  for (uint32_t i = 0; i < output_count; i++) {
    assert_true(result != OK || outputs[i]);
    tensor_release(outputs[i]);
  }
  return result == OK;
}

static struct tensor strings(const struct string_view *views, int64_t count) {
  return (struct tensor){.dtype = DTYPE_STRING, .shape = {.rank = 1, .dims = {count}}, .count = count, .data = (void *)(uintptr_t)views};
}

static struct tensor scalar(const struct string_view *view) {
  struct tensor tensor = strings(view, 1);
  tensor.shape.rank = 0;
  return tensor;
}

static bool read_wav(const struct bytes *file) {
  struct tensor in = scalar(&(struct string_view){(const char *)file->data, file->size});
  return call_host(host_decode_wav, &in, 1, 2);
}

static bool read_json(const struct bytes *file) {
  struct tensor in = scalar(&(struct string_view){(const char *)file->data, file->size});
  return call_host(host_decode_json_example, &in, 1, 1);
}

/* Two examples, a good and a damaged one; the features are sparse floats. */
static bool read_example(const struct bytes *file) {
  const struct string_view keys[] = {{"a", 1}, {"b", 1}}, two[] = {{(const char *)file->data, file->size}, {"", 0}};
  const struct tensor none = strings(NULL, 0);
  struct tensor in[9] = {strings(two, 2), none, strings(keys, 2), none, none, none, none, none, none};
  bool good = call_host(host_parse_example_v2, in, 5, 6);
  in[5] = in[2];
  in[2] = none;
  (void)call_host(host_parse_sequence_v2, in, 9, 6);
  return good;
}

/* ---- records ---- */

static char path[64]; /* of a file in memory */
static int descriptor;

static void write_file(const struct bytes *file) {
  assert_int_equal(ftruncate(descriptor, 0), 0);
  assert_int_equal(pwrite(descriptor, file->data, file->size, 0), file->size);
}

typedef status (*record_reader)(struct record_file *f, struct string_view *out, bool *end);

/* How many there are; -1: the file is damaged. */
static int count_records(const char *compression, record_reader read) {
  struct record_file file = {0};
  struct string_view record;
  int count = 0;
  bool end = false;
  status result = record_file_open(&file, (struct string_view){path, strlen(path)}, (struct string_view){compression, strlen(compression)});
  for (; result == OK; count += !end) {
    result = read(&file, &record, &end);
    assert_true(result == OK || result == DATA_LOSS || result == RESOURCE_EXHAUSTED);
    if (end)
      break;
  }
  record_file_free(&file);
  return result == OK ? count : -1;
}

static status read_chunk(struct record_file *f, struct string_view *out, bool *end) {
  TRY(record_file_bytes(f, 1000, out));
  *end = out->size == 0;
  return OK;
}

static bool read_records(const struct bytes *file) {
  mended = *file;
  for (size_t at = 0; at + 16 <= mended.size;) {
    uint64_t size;
    memcpy(&size, mended.data + at, 8);
    uint32_t sum = crc32c_mask(crc32c(&size, 8));
    memcpy(mended.data + at + 8, &sum, 4);
    if (size > mended.size - at - 16)
      break;
    sum = crc32c_mask(crc32c(mended.data + at + 12, (size_t)size));
    memcpy(mended.data + at + 12 + size, &sum, 4);
    at += 16 + (size_t)size;
  }
  write_file(&mended);
  return count_records("", record_file_record) == 3 && count_records("", record_file_line) > 0;
}

static bool read_compressed(const struct bytes *file, const char *compression) {
  struct wire_buffer out = {0};
  bool good = inflate_bytes(file->data, file->size, compression[0] == 'G', &out) == OK && out.size > 0;
  wire_buffer_free(&out);
  write_file(file);
  (void)count_records(compression, record_file_record);
  return count_records(compression, record_file_line) > 0 && count_records(compression, read_chunk) > 0 && good;
}

static bool read_gzip(const struct bytes *file) { return read_compressed(file, "GZIP"); }
static bool read_zlib(const struct bytes *file) { return read_compressed(file, "ZLIB"); }

/* ---- CSV: a text, a float, a text, a number ---- */

static bool read_csv(const struct bytes *file) {
  static const struct program_instr instr;
  static float zero;
  static int64_t room = 1 << 10;
  static bool yes = true, no = false;
  const struct string_view text[] = {{path, strlen(path)}, {"", 0}, {",", 1}, {"NA", 2}};
  struct tensor number = {.dtype = DTYPE_INT64, .count = 1, .data = &room}, none = {.dtype = DTYPE_INT64, .shape = {.rank = 1}};
  struct tensor in[] = {scalar(&text[0]), scalar(&text[1]),
                        number,           {.dtype = DTYPE_BOOL, .count = 1, .data = &no},
                        scalar(&text[2]), {.dtype = DTYPE_BOOL, .count = 1, .data = &yes},
                        scalar(&text[3]), none,
                        scalar(&text[1]), {.dtype = DTYPE_FLOAT, .count = 1, .data = &zero},
                        scalar(&text[1]), number};
  struct tensor *inputs[sizeof in / sizeof *in], *element[4];
  for (size_t i = 0; i < sizeof in / sizeof *in; i++)
    inputs[i] = &in[i];
  struct dataset dataset = {.object = {.references = 2},
                            .kind = dataset_kind_find("CSVDataset"),
                            .words = {.instr = &instr},
                            .inputs = inputs,
                            .input_count = sizeof in / sizeof *in,
                            .component_count = 4};
  struct cursor *cursor;
  int good = 0;
  bool end = false;
  write_file(file);
  assert_int_equal(dataset.kind->check(&dataset), OK);
  assert_int_equal(cursor_create(&dataset, &cursor), OK);
  for (int i = 0; i < ELEMENTS_MAX && !end; i++) {
    bool is_good = cursor_next(cursor, NULL, element, &end) == OK && !end; /* a wrong record is followed by others */
    good += is_good;
    if (is_good)
      element_release(element, 4);
  }
  assert_true(end);
  cursor_destroy(cursor);
  return good == 3;
}

/* ---- all of them ---- */

static const struct corpus_file corpus[] = {
  {"palette.png", read_png},    {"wide.png", read_png},           {"grey.jpg", read_jpeg}, {"progressive.jpg", read_jpeg},
  {"frames.gif", read_gif},     {"plain.bmp", read_bmp},          {"sound.wav", read_wav}, {"example.json", read_json},
  {"example.pb", read_example}, {"three.tfrecord", read_records}, {"two.gz", read_gzip},   {"text.zlib", read_zlib},
  {"records.csv", read_csv},
};
#define CORPUS_COUNT (sizeof corpus / sizeof *corpus)

static int load_all(void **state) {
  (void)state;
  corpus_load(corpus, CORPUS_COUNT);
  descriptor = memfd_create("records", MFD_CLOEXEC);
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  return descriptor < 0 ? -1 : 0;
}

static int close_file(void **state) {
  (void)state;
  return close(descriptor);
}

static void good_bytes_are_read(void **state) {
  (void)state;
  corpus_read(corpus, CORPUS_COUNT);
}

static void damaged_bytes_do_no_harm(void **state) {
  (void)state;
  corpus_damage(corpus, CORPUS_COUNT);
}

static void every_beginning_does_no_harm(void **state) {
  (void)state;
  corpus_cut(corpus, CORPUS_COUNT, FILE_BYTES_MAX + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_bytes_are_read),
    cmocka_unit_test(damaged_bytes_do_no_harm),
    cmocka_unit_test(every_beginning_does_no_harm),
  };
  return cmocka_run_group_tests(tests, load_all, close_file);
}
