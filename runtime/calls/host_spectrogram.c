/* host_spectrogram.c: spectra of sounds, window by window (AudioSpectrogram), and their cepstral coefficients (Mfcc):
 * the spectrum gathered in bands that are evenly spaced on the mel scale, the logarithms of those, and a cosine
 * transform. Computed in double, as TensorFlow does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fourier.h"
#include "runtime/host/host.h"

/* ---- the spectrum of a window ---- */

struct spectrum {
  struct fourier fourier;
  int64_t window, size, stride; /* size: a power of two, at least the window */
  double *hann, *re, *im;       /* window; size each */
};

static void window_spectrum(struct spectrum *s, const float *samples, int64_t apart, bool squared, float *out) {
  for (int64_t i = 0; i < s->size; i++) {
    s->re[i] = i < s->window ? (double)samples[i * apart] * s->hann[i] : 0;
    s->im[i] = 0;
  }
  fourier_run(&s->fourier, s->re, s->im, 1);
  for (int64_t i = 0; i <= s->size / 2; i++) {
    float power = (float)(s->re[i] * s->re[i] + s->im[i] * s->im[i]);
    out[i] = squared ? power : sqrtf(power);
  }
}

static void all_windows(struct spectrum *s, const struct tensor *sound, bool squared, struct tensor *out) {
  int64_t channels = out->shape.dims[0], windows = out->shape.dims[1], bins = out->shape.dims[2];
  for (int64_t c = 0; c < channels; c++)
    for (int64_t w = 0; w < windows; w++)
      window_spectrum(s, (const float *)sound->data + w * s->stride * channels + c, channels, squared,
                      (float *)out->data + (c * windows + w) * bins);
}

status host_audio_spectrogram(struct host_call *call) {
  const struct tensor *sound = &call->inputs[0];
  struct spectrum s = {.window = host_attr_int(call, "window_size", 2), .stride = host_attr_int(call, "stride", 1), .size = 1};
  while (s.size < s.window)
    s.size *= 2;
  int64_t samples = sound->shape.dims[0], windows = samples < s.window ? 0 : 1 + (samples - s.window) / s.stride;
  TRY(host_make_output(call, 0, DTYPE_FLOAT, &(struct shape){3, {sound->shape.dims[1], windows, s.size / 2 + 1}}));
  TRY(fourier_init(&s.fourier, s.size, false, 1));
  s.hann = malloc(sizeof(double) * (size_t)(s.window + 2 * s.size));
  if (!s.hann) {
    fourier_deinit(&s.fourier);
    return fail(RESOURCE_EXHAUSTED, "no memory for a spectrogram");
  }
  s.re = s.hann + s.window;
  s.im = s.re + s.size;
  for (int64_t i = 0; i < s.window; i++)
    s.hann[i] = 0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)s.window);
  all_windows(&s, sound, host_attr_int(call, "magnitude_squared", 0) != 0, call->outputs[0]);
  free(s.hann);
  fourier_deinit(&s.fourier);
  return OK;
}

/* ---- cepstral coefficients ---- */

struct mel {
  int64_t bins, bands, coefficients, first, last; /* bins between the two frequencies */
  int64_t *band;                                  /* for each bin: the band whose centre is below it; -1: none */
  double *weight;                                 /* how much of the bin that band gets; the next one gets the rest */
  double *energy, *cosines;
};

static double mel_of(double hertz) { return 1127 * log1p(hertz / 700); }

/* Where each bin lies between the centres of the bands. */
static void mel_bands(struct mel *m, double hertz, double low, double high) {
  double bottom = mel_of(low), spacing = (mel_of(high) - bottom) / (double)(m->bands + 1);
  for (int64_t i = m->first, band = 0; i <= m->last; i++) {
    double at = mel_of((double)i * hertz);
    while (band < m->bands && bottom + spacing * (double)(band + 1) < at)
      band++;
    m->band[i] = band - 1;
    m->weight[i] = (bottom + spacing * (double)(band + 1) - at) / spacing;
  }
}

static void mel_cosines(struct mel *m) {
  double norm = sqrt(2.0 / (double)m->bands), step = M_PI / (double)m->bands;
  for (int64_t i = 0; i < m->coefficients; i++)
    for (int64_t k = 0; k < m->bands; k++)
      m->cosines[i * m->bands + k] = norm * cos((double)i * step * ((double)k + 0.5));
}

static void window_coefficients(const struct mel *m, const float *spectrum, float *out) {
  memset(m->energy, 0, sizeof(double) * (size_t)m->bands);
  for (int64_t i = m->first; i <= m->last; i++) {
    double value = sqrt((double)spectrum[i]), part = value * m->weight[i];
    if (m->band[i] >= 0)
      m->energy[m->band[i]] += part;
    if (m->band[i] + 1 < m->bands)
      m->energy[m->band[i] + 1] += value - part;
  }
  for (int64_t k = 0; k < m->bands; k++)
    m->energy[k] = log(m->energy[k] < 1e-12 ? 1e-12 : m->energy[k]);
  for (int64_t i = 0; i < m->coefficients; i++) {
    double sum = 0;
    for (int64_t k = 0; k < m->bands; k++)
      sum += m->cosines[i * m->bands + k] * m->energy[k];
    out[i] = (float)sum;
  }
}

static status mel_init(struct mel *m, double rate, double low, double high) {
  if (rate <= 0 || m->bins < 2 || !(low >= 0) || !(high > low)) /* nor NaN */
    return fail(INVALID_ARGUMENT, "Mfcc initialization failed for channel count %lld, sample rate %g", (long long)m->bins, rate);
  double hertz = 0.5 * rate / (double)(m->bins - 1);
  m->first = (int64_t)fmin(1.5 + low / hertz, (double)m->bins);
  m->last = (int64_t)fmin(high / hertz, (double)(m->bins - 1));
  size_t doubles = (size_t)(m->bins + m->bands + m->bands * m->coefficients);
  m->weight = calloc(doubles + (size_t)m->bins, 8);
  if (!m->weight)
    return fail(RESOURCE_EXHAUSTED, "no memory for cepstral coefficients");
  m->energy = m->weight + m->bins;
  m->cosines = m->energy + m->bands;
  m->band = (int64_t *)(m->weight + doubles);
  mel_bands(m, hertz, low, high);
  mel_cosines(m);
  return OK;
}

status host_mfcc(struct host_call *call) {
  const struct tensor *x = &call->inputs[0];
  struct mel m = {.bins = x->shape.dims[2],
                  .bands = host_attr_int(call, "filterbank_channel_count", 40),
                  .coefficients = host_attr_int(call, "dct_coefficient_count", 13)};
  TRY(mel_init(&m, (double)host_scalar_int(&call->inputs[1]), host_attr_float(call, "lower_frequency_limit", 20),
               host_attr_float(call, "upper_frequency_limit", 4000)));
  status result = host_make_output(call, 0, DTYPE_FLOAT, &(struct shape){3, {x->shape.dims[0], x->shape.dims[1], m.coefficients}});
  for (int64_t i = 0; result == OK && i < x->shape.dims[0] * x->shape.dims[1]; i++)
    window_coefficients(&m, (const float *)x->data + i * m.bins, (float *)call->outputs[0]->data + i * m.coefficients);
  free(m.weight);
  return result;
}
