/* formula_bessel.c: Bessel functions of order 0 and 1, J, Y and the modified K, as formulas without loops, computed in double and rounded
 * once. I is in formula_special.c.
 *
 * J and Y: up to 8 a Chebyshev series in x^2, to which Y adds its logarithm; beyond, sqrt(2 / (pi x)) times P cos t - Q sin t
 * (for Y: P sin t + Q cos t) with t = x - pi/4 or x - 3 pi/4, P and x Q being Chebyshev series in (8 / x)^2. K: up to 2 a series in x^2
 * and a logarithm times I; beyond, e^-x / sqrt(x) times a series in 2 / x. (The coefficients are discrete cosine transforms of the
 * functions at 70 nodes.) */
#include <math.h>

#include "ir/kernel/formula_wide.h"

static const double j0_small[] = {0.15772797147489012,    -0.0087234423528522211,  0.2651786132033368,     -0.37009499387264977,
                                  0.15806710233209725,    -0.034893769411408884,   0.0048191800694676046,  -0.00046062616620627504,
                                  3.2460328821005083e-05, -1.7619469077621507e-06, 7.6081635924187821e-08, -2.6792535305576728e-09,
                                  7.8486963144794648e-11, -1.9438346867370164e-12, 4.1253205956343741e-14, -7.5885081254475459e-16,
                                  1.2218515873961411e-17};

static const double j1_small[] = {0.081044846325658115,   -0.14897514506765211,    0.16099926235720971,    -0.08268049176681791,
                                  0.022213639654966037,   -0.0036469406007692759,  0.0004050337728354822,  -3.2555548668572587e-05,
                                  1.9858774049915165e-06, -9.5219847567504361e-08, 3.6871337590971481e-09, -1.178026622695885e-10,
                                  3.1601545803480032e-12, -7.2217552396517734e-14, 1.4232144003513942e-15, -2.4441972916190464e-17};

static const double y0_small[] = {-0.033146113203284942,   -0.27447430552974528,   0.17903431407718265,     0.26156734625504663,
                                  -0.17730201278114358,    0.04719668959576339,    -0.0072879624795520789,  0.0007531135932577742,
                                  -5.6320791410569873e-05, 3.2065325376548008e-06, -1.44072332740187e-07,   5.2487947873305158e-09,
                                  -1.5837552541812015e-10, 4.0263308183061204e-12, -8.7473412033107693e-14, 1.6434898714919468e-15,
                                  -2.6977881152566837e-17};

static const double y1_small[] = {0.0025380132357417816,   -0.016087173047668751,  -0.095912045360830742,   0.084451972596523456,
                                  -0.028328123944594365,   0.0052898975441671133,  -0.0006414551451326356,  5.5059828733387439e-05,
                                  -3.5380800186893499e-06, 1.7707804556154404e-07, -7.1105500498992796e-09, 2.3443379059115162e-10,
                                  -6.4651518414115946e-12, 1.51429151205002e-13,   -3.0511859694473254e-15, 5.3466803857286703e-17};

static const double j0_cosine[] = {0.99946034934751871,    -0.00053652204681321172, 3.0751847875194745e-06, -5.1705945376060975e-08,
                                   1.6306464635151382e-09, -7.8640913772370698e-11, 5.1682623873491928e-12, -4.3045788699253914e-13,
                                   4.3265957431549404e-14, -5.0690340959352359e-15, 6.7480722157338734e-16, -1.0011513723467786e-16,
                                   1.6305919233744186e-17};

static const double j0_sine[] = {-0.12444683684269607,    0.00054708159540893195, -5.9315987288485175e-06, 1.4377965798375193e-07,
                                 -5.8175327494930561e-09, 3.3760975237349908e-10, -2.5653979367973079e-11, 2.404916100281365e-12,
                                 -2.6690625482579414e-13, 3.4041800321963686e-14, -4.8799441053120397e-15, 7.7297031762426054e-16,
                                 -1.3348852171502517e-16, 2.4865952389390515e-17, -4.9528926298865157e-18};

static const double j1_cosine[] = {1.0009030408600137,      0.00089898983308594083, -3.9872843004889084e-06, 6.1776339606442988e-08,
                                   -1.8718907491063067e-09, 8.8168986595823391e-11, -5.7048636403956448e-12, 4.699195515230542e-13,
                                   -4.6842237839904895e-14, 5.4526748960447171e-15, -7.2211808422740179e-16, 1.0667689114335412e-16,
                                   -1.7312313216116335e-17};

static const double j1_sine[] = {0.37422229655628259,    -0.00077021788393256637, 7.3108922063643636e-06, -1.6767825107266739e-07,
                                 6.5833546621204433e-09, -3.7490909505415562e-10, 2.8121750359748866e-11, -2.61145253946232e-12,
                                 2.8774212663332235e-13, -3.6490019160618379e-14, 5.2066263662267069e-15, -8.2153180254585947e-16,
                                 1.4141084390211833e-16, -2.6267615898385291e-17, 5.2192649196714085e-18};

static const double k0_small[] = {-0.26766369661695139,   0.3442898999246285,     0.035979936515361501,   0.001264615411446926,
                                  2.2862121031194519e-05, 2.5347910790261494e-07, 1.9045163772202091e-09, 1.0349695257633625e-11,
                                  4.2598161427910826e-14, 1.3744654358807508e-16};

static const double k1_small[] = {0.76265011366947388,     -0.35315596077654487,    -0.12261118082265715,   -0.0069757238596398641,
                                  -0.0001730288957513052,  -2.4334061415659684e-06, -2.213387630734726e-08, -1.4114883926335278e-10,
                                  -6.6669016941993295e-13, -2.427449850519366e-15};

static const double k0_large[] = {1.2201515410329777,     -0.031448101311964502,   0.0015698838857300533,  -0.00012849549581627802,
                                  1.39498137188765e-05,   -1.8317555227191195e-06, 2.7668136394450149e-07, -4.6604898976879478e-08,
                                  8.5740340174142253e-09, -1.6975345093890614e-09, 3.5773972814003283e-10, -7.9574892444773965e-11,
                                  1.8559491149549264e-11, -4.5145978833745193e-12, 1.1403405882073441e-12, -2.9800969231481784e-13,
                                  8.0328907750683746e-14, -2.2275133267462965e-14, 6.3400764762766461e-15, -1.8485933779209071e-15,
                                  5.5120559994043335e-16, -1.6782311257549006e-16, 5.2103917776435543e-17, -1.6475805939842632e-17};

static const double k1_large[] = {1.3603130952422213,      0.10392373657681724,    -0.0028578168596227792,  0.00019521551847135162,
                                  -1.936197974166083e-05,  2.406484947837217e-06,  -3.5019606030878126e-07, 5.7410841254500495e-08,
                                  -1.0345762465678097e-08, 2.0150497551970347e-09, -4.1903547593419254e-10, 9.2183151876053146e-11,
                                  -2.1299678384277909e-11, 5.1396396734823432e-12, -1.2891739609498229e-12, 3.3484196660522431e-13,
                                  -8.9767051820101463e-14, 2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15,
                                  -6.0570472706430177e-16, 1.8380935752430455e-16, -5.6894628491936484e-17, 1.7940510478863572e-17};

/* ---- J and Y ---- */

#define SPLIT 8.0

/* The place of x^2, cut to the interval of the small series, in [-1,1]. */
static struct element small_place(struct formula *f, struct element x) {
  struct element cut = f_binary(f, SCALAR_MIN, x, num(f, SPLIT));
  return sub(f, mul(f, mul(f, cut, cut), num(f, 2 / (SPLIT * SPLIT))), num(f, 1));
}

/* The waves beyond the split: their phase, and the two series with their common factor. */
struct wave {
  struct element sine, cosine, p, q;
};
static struct wave wave_of(struct formula *f, struct element x, int order) {
  struct element far = f_binary(f, SCALAR_MAX, x, num(f, SPLIT)), inverse = divide(f, num(f, SPLIT), far);
  struct element place = sub(f, mul(f, num(f, 2), mul(f, inverse, inverse)), num(f, 1));
  struct element phase = sub(f, far, num(f, order ? 3 * M_PI_4 : M_PI_4));
  struct element scale = un(f, SCALAR_SQRT, divide(f, num(f, M_2_PI), far));
  struct element p = order ? SERIES(place, j1_cosine) : SERIES(place, j0_cosine),
                 q = order ? SERIES(place, j1_sine) : SERIES(place, j0_sine);
  return (struct wave){un(f, SCALAR_SIN, phase), un(f, SCALAR_COS, phase), mul(f, scale, p), divide(f, mul(f, scale, q), far)};
}

static struct element beyond(struct formula *f, struct element x, struct element large, struct element small) {
  return f_select(f, less(f, num(f, SPLIT), x), large, small);
}

struct element f_bessel_j0(struct formula *f, struct element a) {
  struct element x = un(f, SCALAR_ABS, wide(f, a));
  struct wave w = wave_of(f, x, 0);
  struct element large = sub(f, mul(f, w.p, w.cosine), mul(f, w.q, w.sine));
  return narrow(f, a, beyond(f, x, large, SERIES(small_place(f, x), j0_small)));
}

struct element f_bessel_j1(struct formula *f, struct element a) {
  struct element with_sign = wide(f, a), x = un(f, SCALAR_ABS, with_sign);
  struct wave w = wave_of(f, x, 1);
  struct element large = sub(f, mul(f, w.p, w.cosine), mul(f, w.q, w.sine));
  struct element value = beyond(f, x, large, mul(f, x, SERIES(small_place(f, x), j1_small)));
  return narrow(f, a, odd(f, with_sign, value));
}

/* Y and K have a pole at 0, and its value below. */
static struct element with_pole(struct formula *f, struct element x, double pole, struct element value) {
  return f_select(f, f_binary(f, SCALAR_LE, x, num(f, 0)), num(f, pole), value);
}

struct element f_bessel_y0(struct formula *f, struct element a) {
  struct element x = wide(f, a), place = small_place(f, x);
  struct wave w = wave_of(f, x, 0);
  struct element large = add(f, mul(f, w.p, w.sine), mul(f, w.q, w.cosine));
  struct element logarithm = mul(f, num(f, M_2_PI), un(f, SCALAR_LOG, x));
  struct element small = add(f, SERIES(place, y0_small), mul(f, logarithm, SERIES(place, j0_small)));
  return narrow(f, a, with_pole(f, x, -INFINITY, beyond(f, x, large, small)));
}

struct element f_bessel_y1(struct formula *f, struct element a) {
  struct element x = wide(f, a), place = small_place(f, x);
  struct wave w = wave_of(f, x, 1);
  struct element large = add(f, mul(f, w.p, w.sine), mul(f, w.q, w.cosine));
  struct element j = mul(f, x, SERIES(place, j1_small)), logarithm = mul(f, un(f, SCALAR_LOG, x), j);
  struct element small = add(f, mul(f, x, SERIES(place, y1_small)), mul(f, num(f, M_2_PI), sub(f, logarithm, divide(f, num(f, 1), x))));
  struct element y = with_pole(f, x, -INFINITY, beyond(f, x, large, small));
  if (element_dtype(f, a) != DTYPE_DOUBLE) /* TensorFlow's in float has no value at the pole itself */
    y = f_select(f, f_binary(f, SCALAR_EQ, x, num(f, 0)), num(f, NAN), y);
  return narrow(f, a, y);
}

/* ---- K, and K times e^x ---- */

static struct element modified(struct formula *f, struct element a, int order, bool scaled) {
  struct element x = wide(f, a), two = num(f, 2), near = f_binary(f, SCALAR_MIN, x, two), far = f_binary(f, SCALAR_MAX, x, two);
  struct element place = sub(f, mul(f, num(f, 0.5), mul(f, near, near)), num(f, 1));
  struct element logarithm = un(f, SCALAR_LOG, mul(f, near, num(f, 0.5))), growth = un(f, SCALAR_EXP, near);
  struct element i = mul(f, growth, order ? f_bessel_i1e(f, near) : f_bessel_i0e(f, near));
  struct element small =
    order ? add(f, divide(f, SERIES(place, k1_small), near), mul(f, logarithm, i)) : sub(f, SERIES(place, k0_small), mul(f, logarithm, i));
  place = sub(f, divide(f, num(f, 4), far), num(f, 1));
  struct element large = divide(f, order ? SERIES(place, k1_large) : SERIES(place, k0_large), un(f, SCALAR_SQRT, far));
  if (scaled)
    small = mul(f, small, growth);
  else
    large = mul(f, large, un(f, SCALAR_EXP, un(f, SCALAR_NEG, far)));
  return narrow(f, a, with_pole(f, x, INFINITY, f_select(f, less(f, two, x), large, small)));
}
struct element f_bessel_k0(struct formula *f, struct element a) {
  return modified(f, a, 0, false);
}
struct element f_bessel_k1(struct formula *f, struct element a) {
  return modified(f, a, 1, false);
}
struct element f_bessel_k0e(struct formula *f, struct element a) {
  return modified(f, a, 0, true);
}
struct element f_bessel_k1e(struct formula *f, struct element a) {
  return modified(f, a, 1, true);
}
