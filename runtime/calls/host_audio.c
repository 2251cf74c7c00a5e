/* host_audio.c: sounds: WAV files (RIFF, 16 bits a sample) from samples and back, and summaries of sounds. Samples are floats in [-1, 1);
 * those of one moment, one for each channel, stand side by side. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "runtime/host/host.h"

#define HEADER_SIZE 44
#define SCALE 32768.0f

/* ---- writing ---- */

static void put_number(struct wire_buffer *out, uint32_t number, size_t bytes) { wire_put_raw(out, &number, bytes); }

static int16_t to_sample(float value) { return (int16_t)fminf(fmaxf(roundf(value * SCALE), INT16_MIN), INT16_MAX); }

static status write_wav(struct wire_buffer *out, const float *samples, int64_t rate, int64_t channels, int64_t frames) {
  if (rate < 1 || rate > UINT32_MAX)
    return fail(INVALID_ARGUMENT, "sample_rate must be in (0, 2^32), got: %lld", (long long)rate);
  if (channels < 1 || channels > UINT16_MAX)
    return fail(INVALID_ARGUMENT, "num_channels must be in (0, 2^16), got: %lld", (long long)channels);
  if (frames > (INT64_C(1) << 32) || frames * channels * 2 + HEADER_SIZE > UINT32_MAX)
    return fail(INVALID_ARGUMENT, "Provided channels and frames cannot be encoded as a WAV.");
  uint32_t size = (uint32_t)(frames * channels * 2);
  wire_put_raw(out, "RIFF", 4);
  put_number(out, size + HEADER_SIZE - 8, 4);
  wire_put_raw(out, "WAVEfmt ", 8);
  put_number(out, 16, 4);
  put_number(out, 1, 2); /* not compressed */
  put_number(out, (uint32_t)channels, 2);
  put_number(out, (uint32_t)rate, 4);
  put_number(out, (uint32_t)(rate * channels * 2), 4);
  put_number(out, (uint32_t)channels * 2, 2);
  put_number(out, 16, 2);
  wire_put_raw(out, "data", 4);
  put_number(out, size, 4);
  for (int64_t i = 0; i < frames * channels; i++) {
    int16_t sample = to_sample(samples[i]);
    wire_put_raw(out, &sample, 2);
  }
  return OK;
}

/* Output 0: the bytes. Frees them. */
static status give_bytes(struct host_call *call, struct wire_buffer *bytes, status result) {
  if (result == OK && bytes->is_bad)
    result = fail(RESOURCE_EXHAUSTED, "no memory for a sound");
  if (result == OK)
    result =
      tensor_copy_in(DTYPE_STRING, &(struct shape){0}, &(struct string_view){(const char *)bytes->data, bytes->size}, &call->outputs[0]);
  wire_buffer_free(bytes);
  return result;
}

status host_encode_wav(struct host_call *call) {
  const struct tensor *audio = &call->inputs[0];
  struct wire_buffer out = {0};
  if (audio->shape.rank != 2)
    return fail(INVALID_ARGUMENT, "audio must be 2-dimensional%s", shape_text(&audio->shape));
  if (call->inputs[1].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "Input sample_rate should be a scalar tensor, got %s instead.", shape_text(&call->inputs[1].shape));
  return give_bytes(call, &out,
                    write_wav(&out, audio->data, host_scalar_int(&call->inputs[1]), audio->shape.dims[1], audio->shape.dims[0]));
}

/* Summary.Audio (summary.proto) with its tag. */
static status put_sound(struct wire_buffer *summary, const char *tag, size_t tag_size, const float *samples, float rate, int64_t channels,
                        int64_t frames) {
  struct wire_buffer value = {0}, audio = {0}, wav = {0};
  long whole = lrintf(rate);
  status result = write_wav(&wav, samples, whole ? whole : 1, channels, frames);
  uint8_t head = 1 << 3 | WIRE_FIXED32;
  wire_put_raw(&audio, &head, 1);
  wire_put_raw(&audio, &rate, 4);
  wire_put_varint(&audio, 2, (uint64_t)channels);
  if (frames)
    wire_put_varint(&audio, 3, (uint64_t)frames);
  wire_put_message(&audio, 4, &wav);
  wire_put_text(&audio, 5, "audio/wav");
  wire_put_bytes(&value, 1, tag, tag_size);
  wire_put_message(&value, 6, &audio);
  wire_put_message(summary, 1, &value);
  return result;
}

status host_audio_summary(struct host_call *call) {
  const struct tensor *sound = &call->inputs[1];
  struct string_view base = host_scalar_string(&call->inputs[0]);
  int64_t most = host_attr_int(call, "max_outputs", 3), channels = sound->shape.rank == 3 ? sound->shape.dims[2] : 1;
  if (call->inputs[0].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "Tag must be a scalar");
  if (sound->shape.rank != 2 && sound->shape.rank != 3)
    return fail(INVALID_ARGUMENT, "Tensor must be 3-D or 2-D, got: %s", shape_text(&sound->shape));
  if (call->input_count > 2 && call->inputs[2].count != 1)
    return fail(INVALID_ARGUMENT, "sample_rate must be rank-0 or contain a single value");
  float rate = call->input_count > 2 ? *(const float *)call->inputs[2].data : (float)host_attr_float(call, "sample_rate", 0);
  if (!(rate > 0))
    return fail(INVALID_ARGUMENT, "sample_rate must be > 0");
  struct wire_buffer summary = {0};
  char *tag = malloc(base.size + 40);
  status result = tag ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a summary");
  for (int64_t i = 0; i < most && i < sound->shape.dims[0] && result == OK; i++) {
    memcpy(tag, base.data, base.size);
    int size = snprintf(tag + base.size, 40, most > 1 ? "/audio/%lld" : "/audio", (long long)i);
    int64_t each = sound->shape.dims[1] * channels;
    result =
      put_sound(&summary, tag, base.size + (size_t)size, (const float *)sound->data + i * each, rate, channels, sound->shape.dims[1]);
  }
  free(tag);
  return give_bytes(call, &summary, result);
}

/* ---- reading ---- */

struct wav {
  const uint8_t *at, *end;
  uint32_t rate, frames;
  uint16_t channels, frame_size;
  const uint8_t *samples;
};

static status too_short(void) { return fail(INVALID_ARGUMENT, "Data too short when trying to read string"); }

static status take(struct wav *w, void *to, size_t size) {
  if ((size_t)(w->end - w->at) < size)
    return too_short();
  memcpy(to, w->at, size);
  w->at += size;
  return OK;
}

static status expect(struct wav *w, const char *text) {
  char found[4];
  TRY(take(w, found, 4));
  return memcmp(found, text, 4) == 0 ? OK : fail(INVALID_ARGUMENT, "Header mismatch: Expected %s but found %.4s", text, found);
}

/* Chunks that may stand before the format are skipped. */
static status find_format(struct wav *w) {
  static const char known[] = "JUNK bext iXML qlty mext levl link axml";
  char name[5] = {0};
  uint32_t size = 0;
  for (;;) {
    TRY(take(w, name, 4));
    if (memcmp(name, "fmt ", 4) == 0)
      return OK;
    if (!strstr(known, name) || strlen(name) != 4)
      return fail(INVALID_ARGUMENT, "Unexpected field %s", name);
    TRY(take(w, &size, 4));
    if ((size_t)(w->end - w->at) < size)
      return too_short();
    w->at += size;
  }
}

static status read_format(struct wav *w) {
  uint32_t size = 0, bytes_per_second = 0;
  uint16_t format = 0, bits = 0;
  TRY(take(w, &size, 4));
  if (size != 16 && size != 18)
    return fail(INVALID_ARGUMENT, "Bad format chunk size for WAV: Expected 16 or 18, but got%u", size);
  TRY(take(w, &format, 2));
  if (format != 1)
    return fail(INVALID_ARGUMENT, "Bad audio format for WAV: Expected 1 (PCM), but got%u", format);
  TRY(take(w, &w->channels, 2));
  if (w->channels < 1)
    return fail(INVALID_ARGUMENT, "Bad number of channels for WAV: Expected at least 1, but got 0");
  TRY(take(w, &w->rate, 4));
  TRY(take(w, &bytes_per_second, 4));
  TRY(take(w, &w->frame_size, 2));
  TRY(take(w, &bits, 2));
  if (bits != 16)
    return fail(INVALID_ARGUMENT, "Can only read 16-bit WAV files, but received %u", bits);
  if (w->frame_size != 2u * w->channels)
    return fail(INVALID_ARGUMENT, "Bad bytes per sample in WAV header: Expected %u but got %u", 2u * w->channels, w->frame_size);
  if (bytes_per_second != (uint64_t)w->frame_size * w->rate)
    return fail(INVALID_ARGUMENT, "Bad bytes per second in WAV header: Expected %llu but got %u",
                (unsigned long long)w->frame_size * w->rate, bytes_per_second);
  uint16_t unused;
  return size == 18 ? take(w, &unused, 2) : OK;
}

static status read_data(struct wav *w) {
  while (w->at < w->end) {
    char name[4];
    uint32_t size = 0;
    TRY(take(w, name, 4));
    TRY(take(w, &size, 4));
    if (size > INT32_MAX)
      return fail(INVALID_ARGUMENT, "WAV data chunk '%.4s' is too large: %u bytes, but the limit is %d", name, size, INT32_MAX);
    bool is_data = memcmp(name, "data", 4) == 0;
    if (is_data && w->samples)
      return fail(INVALID_ARGUMENT, "More than one data chunk found in WAV");
    if (is_data) {
      w->frames = size / w->frame_size;
      w->samples = w->at;
      size = w->frames * w->frame_size;
    }
    if ((size_t)(w->end - w->at) < size) {
      if (is_data)
        return too_short();
      size = (uint32_t)(w->end - w->at);
    }
    w->at += size;
  }
  return w->samples ? OK : fail(INVALID_ARGUMENT, "No data chunk found in WAV");
}

static float sample_at(const struct wav *w, int64_t frame, int64_t channel) {
  int16_t sample;
  if (frame >= w->frames)
    return 0;
  memcpy(&sample, w->samples + frame * w->frame_size + (channel < w->channels ? channel : w->channels - 1) * 2, 2);
  return (float)sample * (1 / SCALE);
}

status host_decode_wav(struct host_call *call) {
  struct string_view file = host_scalar_string(&call->inputs[0]);
  struct wav w = {.at = (const uint8_t *)file.data, .end = (const uint8_t *)file.data + file.size};
  uint32_t unused;
  TRY(expect(&w, "RIFF"));
  TRY(take(&w, &unused, 4));
  TRY(expect(&w, "WAVE"));
  TRY(find_format(&w));
  TRY(read_format(&w));
  TRY(read_data(&w));
  int64_t frames = host_attr_int(call, "desired_samples", -1), channels = host_attr_int(call, "desired_channels", -1);
  frames = frames == -1 ? w.frames : frames;
  channels = channels == -1 ? w.channels : channels;
  TRY(host_make_output(call, 0, DTYPE_FLOAT, &(struct shape){2, {frames, channels}}));
  TRY(host_make_output(call, 1, DTYPE_INT32, &(struct shape){0}));
  for (int64_t i = 0; i < frames * channels; i++)
    ((float *)call->outputs[0]->data)[i] = sample_at(&w, i / channels, i % channels);
  *(int32_t *)call->outputs[1]->data = (int32_t)w.rate;
  return OK;
}
