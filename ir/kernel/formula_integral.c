/* formula_integral.c: integrals of elementary functions as formulas without loops, computed in double and rounded once: Dawson's,
 * the exponential integral, Fresnel's, and Spence's (the dilogarithm of 1 - x). Chebyshev series on pieces of the axis, in x or 1 / x; the
 * coefficients are discrete cosine transforms of the functions at 70 nodes. */
#include <math.h>

#include "ir/kernel/formula_wide.h"

static const double dawson_small[] = {
  0.22155672794739223,     -0.31811346996168133,    0.20873845413642236,     -0.12475409913779131,    0.067869305186676776,
  -0.033659144895270943,   0.015260781271987971,    -0.0063483709625962144,  0.0024326740920748522,   -0.00086219541491065028,
  0.00028376573336321624,  -8.7057549874170425e-05, 2.4986849985481658e-05,  -6.7319286764160297e-06, 1.7078578785573543e-06,
  -4.0917551226475379e-07, 9.2828292216755774e-08,  -1.9991403610147617e-08, 4.0963490644082194e-09,  -8.0032409540993171e-10,
  1.4938503128761465e-10,  -2.668799988562233e-11,  4.571221698515946e-12,   -7.5187305222043564e-13, 1.1893100052629682e-13,
  -1.8116907933852348e-14, 2.6611733684358971e-15,  -3.7738863052129418e-16, 5.1727953789087173e-17,  -6.8603684084077501e-18};

static const double dawson_large[] = {1.016904856377657,       0.017366504556813916,    0.0004849728084835431,   2.5223647991453802e-05,
                                      2.1329066292723539e-06,  2.7163195895814552e-07,  4.3420847131545967e-08,  5.7340210036105908e-09,
                                      -3.8026727860716403e-10, -6.1955609687904018e-10, -2.0588297521150185e-10, -1.2520712918919153e-11,
                                      1.7126264994892902e-11,  6.0660902961513183e-12,  -5.0472366136185823e-13, -8.4212095908813291e-13,
                                      -8.8622816532924769e-14, 9.8224205456824103e-14,  2.4717124845678067e-14,  -1.1577466398033139e-14,
                                      -4.5654465896147171e-15, 1.5274298822028253e-15,  7.703093767133623e-16,   -2.3998641138565813e-16,
                                      -1.2626878300189145e-16, 4.4791199319459505e-17,  1.9975851660152991e-17};

static const double ei_small[] = {4.9111058843464575,     5.6661135986080158,     2.3492626676137034,     0.75635430938440074,
                                  0.19920229382356897,    0.044428752653067068,   0.0085987166382768439,  0.0014705025963922846,
                                  0.00022533301939463562, 3.1284662784803325e-05, 3.9711039220839795e-06, 4.6432684885932279e-07,
                                  5.032918336954619e-08,  5.0845505454427877e-09, 4.810144028835289e-10,  4.2787420204244489e-11,
                                  3.5916634036991113e-12, 2.8542399260415613e-13, 2.1535115484481425e-14, 1.5466334313866187e-15,
                                  1.0598041657122702e-16};

static const double ei_middle[] = {1.1680733396026677,      0.10407374192304131,     0.0078996588550236703,   -0.00082521570699008835,
                                   -0.00037292677636808808, 2.3319201225530709e-05,  1.4670027820474274e-05,  -2.57902435029795e-06,
                                   -3.0202399976650966e-07, 1.7941200675905959e-07,  -2.3188973346763561e-08, -3.5241037171908044e-09,
                                   2.082796860577049e-09,   -3.8754493423068651e-10, 3.1997839004861025e-12,  1.9390049785253573e-11,
                                   -6.2238744871933494e-12, 9.7310402952524246e-13,  1.1047497660181232e-14,  -5.611528237957154e-14,
                                   1.8836493871170515e-14,  -3.6009376200701606e-15, 2.6610128203774515e-16,  9.9792952368102162e-17,
                                   -5.1406373173786831e-17, 1.3726003797112981e-17};

static const double ei_large[] = {
  1.034784009888041,       0.036081909079167862,   0.0013792466680774694,   8.925243832231336e-05,   9.0221209578206649e-06,
  1.3081483339908779e-06,  2.1656910166239489e-07, 2.3069667967471434e-08,  -5.8760769150139515e-09, -4.4798706745937724e-09,
  -1.1706647457640092e-09, 4.8116930580261587e-11, 1.406858909109371e-10,   3.2743076719098072e-11,  -9.1290721319877843e-12,
  -6.0378690517936469e-12, 1.3175125030648979e-13, 8.518781414694222e-13,   8.6356791516562593e-14,  -1.1783212027861576e-13,
  -2.193373628245498e-14,  1.7503890112778929e-14, 4.0643353578478653e-15,  -2.8950363286736385e-15, -6.5799100738085951e-16,
  5.2997044741487356e-16,  9.067476845369998e-17,  -1.0365432832418048e-16, -7.8936992929712971e-18, 2.0640462773290348e-17};

static const double dilog[] = {1.0149416064096537,     0.13148012838765802,    0.015313452518102082,   0.002272188943655959,
                               0.00038516199300815945, 7.1034043742091151e-05, 1.3885622487404779e-05, 2.8323954583854513e-06,
                               5.968314737835964e-07,  1.2902312437546724e-07, 2.8475309127972237e-08, 6.3926415195057283e-09,
                               1.4558235675968631e-09, 3.3560300279050241e-10, 7.8180194090665888e-11, 1.8379324194103908e-11,
                               4.355524622917214e-12,  1.0395111785603755e-12, 2.4966662781629751e-13, 6.0304702883435765e-14,
                               1.4640624936086265e-14, 3.5709031960700322e-15, 8.7463467913642334e-16, 2.1505456792131715e-16,
                               5.3064798693556575e-17, 1.3136479985932125e-17};

static const double fresnel_c_small[] = {0.34000378753284183,    -0.21463555314242846,    0.15086068597273897,    -0.16275298115965597,
                                         0.094391886970857986,   -0.030258674844348032,   0.0061362593452581379,  -0.00086301007685873638,
                                         8.9526015063848345e-05, -7.155197218935395e-06,  4.5507060807857273e-07, -2.3613846621675632e-08,
                                         1.0198188673971249e-09, -3.7256112709362435e-11, 1.1669697174334323e-12, -3.1701237081773042e-14,
                                         7.5423829468434561e-16, -1.5850932611248597e-17};

static const double fresnel_s_small[] = {0.13731418077153454,    -0.16960110942188242,    0.11972244946441143,    -0.066827478878721577,
                                         0.023698976948917261,   -0.0054552598760263605,  0.00086858346513375934, -0.00010109296316378186,
                                         8.9776175852378011e-06, -6.2880001150462142e-07, 3.5651880075831851e-08, -1.6709016343051067e-09,
                                         6.5849833376505561e-11, -2.2135599128688899e-12, 6.4239677222072853e-14, -1.6262360081997799e-15,
                                         3.6234749496759412e-17};

static const double fresnel_f[] = {0.99724527107406136,     -0.0036323066501281359,  -0.00084873005761769915, 3.1510202070754669e-05,
                                   2.263154926270674e-06,   -3.9163125483160955e-07, 1.258136451199636e-08,   4.0306713497692655e-09,
                                   -7.7833987871051539e-10, 3.912128876346964e-11,   1.220532196524615e-11,   -3.5528464447905055e-12,
                                   3.896454581815972e-13,   3.3254234951184812e-14,  -2.3597359669128831e-14, 4.9944349865612954e-15,
                                   -3.5859716940094708e-16, -1.3540747356563559e-16, 6.1532149053426577e-17,  -1.2880253079459118e-17};

static const double fresnel_g[] = {0.98678918351477363,     -0.017279868468447451,   -0.0038367583452099457,  0.00024934093252477693,
                                   1.2927433545599508e-05,  -3.9162794973520715e-06, 2.5326929616367311e-07,  3.7312829960719969e-08,
                                   -1.1472142105161283e-08, 1.0945739239384935e-09,  1.1936832009289337e-10,  -6.2333665836675181e-11,
                                   1.0419956855329701e-11,  -1.5253547298984906e-13, -4.1327110560536059e-13, 1.2621371018909794e-13,
                                   -1.749726214287286e-14,  -1.1951089249756313e-15, 1.3905274329516842e-15,  -4.0959271808511191e-16,
                                   5.95872567322126e-17};

/* x in [low, high] to [-1, 1] */
static struct element place(struct formula *f, struct element x, double low, double high) {
  struct element cut = f_binary(f, SCALAR_MAX, f_binary(f, SCALAR_MIN, x, num(f, high)), num(f, low));
  return mul(f, sub(f, cut, num(f, (low + high) / 2)), num(f, 2 / (high - low)));
}

/* e^(-x^2) times the integral of e^(t^2) from 0 to x: x times a series in x^2, beyond 4 a series in (4 / x)^2 over 2 x. */
struct element f_dawson(struct formula *f, struct element a) {
  struct element with_sign = wide(f, a), x = un(f, SCALAR_ABS, with_sign), four = num(f, 4);
  struct element small = mul(f, x, SERIES(place(f, mul(f, x, x), 0, 16), dawson_small));
  struct element far = f_binary(f, SCALAR_MAX, x, four), inverse = divide(f, four, far);
  struct element large = divide(f, mul(f, num(f, 0.5), SERIES(place(f, mul(f, inverse, inverse), 0, 1), dawson_large)), far);
  return narrow(f, a, odd(f, with_sign, f_select(f, less(f, four, x), large, small)));
}

/* The principal value of the integral of e^t / t from -infinity to x, of x >= 0: Euler's constant, log x, and x times a series;
 * beyond 6 e^x / x times one of two series in 1 / x. */
struct element f_exponential_integral(struct formula *f, struct element a) {
  struct element x = wide(f, a), six = num(f, 6), sixteen = num(f, 16), euler = num(f, 0.57721566490153286061);
  struct element small = add(f, add(f, euler, un(f, SCALAR_LOG, x)), mul(f, x, SERIES(place(f, x, 0, 6), ei_small)));
  struct element far = f_binary(f, SCALAR_MAX, x, six), inverse = divide(f, num(f, 1), far);
  struct element factor = divide(f, un(f, SCALAR_EXP, far), far);
  struct element series = f_select(f, less(f, sixteen, x), SERIES(place(f, inverse, 0, 1.0 / 16), ei_large),
                                   SERIES(place(f, inverse, 1.0 / 16, 1.0 / 6), ei_middle));
  return narrow(f, a, f_select(f, less(f, six, x), mul(f, factor, series), small));
}

/* The integrals of cos and sin of pi t^2 / 2 from 0 to x: x and x^3 times series in x^4; beyond 2.5 waves around 1/2, which are gone where
 * x^2 has no fractions. */
static struct element fresnel(struct formula *f, struct element a, bool sine) {
  struct element with_sign = wide(f, a), x = un(f, SCALAR_ABS, with_sign), square = mul(f, x, x), split = num(f, 2.5), half = num(f, 0.5);
  struct element at = place(f, mul(f, square, square), 0, 6.25 * 6.25);
  struct element small = sine ? mul(f, mul(f, square, x), SERIES(at, fresnel_s_small)) : mul(f, x, SERIES(at, fresnel_c_small));
  struct element far = f_binary(f, SCALAR_MIN, f_binary(f, SCALAR_MAX, x, split), num(f, 36974)), far_square = mul(f, far, far);
  struct element inverse = place(f, divide(f, num(f, 6.25), far_square), 0, 1), angle = mul(f, num(f, M_PI_2), far_square);
  struct element p = divide(f, SERIES(inverse, fresnel_f), mul(f, num(f, M_PI), far));
  struct element q = divide(f, SERIES(inverse, fresnel_g), mul(f, num(f, M_PI * M_PI), mul(f, far_square, far)));
  struct element s = un(f, SCALAR_SIN, angle), c = un(f, SCALAR_COS, angle);
  struct element waves = sine ? sub(f, half, add(f, mul(f, p, c), mul(f, q, s))) : add(f, half, sub(f, mul(f, p, s), mul(f, q, c)));
  struct element large = f_select(f, less(f, num(f, 36974), x), half, waves);
  return narrow(f, a, odd(f, with_sign, f_select(f, less(f, split, x), large, small)));
}
struct element f_fresnel_cos(struct formula *f, struct element a) {
  return fresnel(f, a, false);
}
struct element f_fresnel_sin(struct formula *f, struct element a) {
  return fresnel(f, a, true);
}

/* Li2(1 - x), by reflection to arguments z of Li2 in [-1/2, 1/2]: from x > 3/2 with 1 / x, from x < 1/2 with 1 - x. */
struct element f_spence(struct formula *f, struct element a) {
  struct element x = wide(f, a), one = num(f, 1), logarithm = un(f, SCALAR_LOG, x);
  struct element above = less(f, num(f, 1.5), x), y = f_select(f, above, divide(f, one, x), x);
  struct element below = less(f, y, num(f, 0.5)), z = f_select(f, below, y, sub(f, one, y));
  struct element value = mul(f, z, SERIES(place(f, z, -0.5, 0.5), dilog));
  struct element product = mul(f, un(f, SCALAR_LOG, y), un(f, SCALAR_LOG, sub(f, one, y)));
  struct element crossed = f_select(f, f_binary(f, SCALAR_EQ, y, num(f, 0)), num(f, 0), product);
  value = f_select(f, below, sub(f, sub(f, num(f, M_PI * M_PI / 6), crossed), value), value);
  struct element turned = sub(f, mul(f, num(f, -0.5), mul(f, logarithm, logarithm)), value);
  value = f_select(f, above, turned, value);
  struct element defined = f_binary(f, SCALAR_AND, f_binary(f, SCALAR_LE, num(f, 0), x), less(f, x, num(f, INFINITY)));
  return narrow(f, a, f_select(f, defined, value, num(f, NAN)));
}
