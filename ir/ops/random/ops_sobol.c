/* ops_sobol.c: points of Sobol's sequence, which fill the unit cube more evenly than random ones. Direction numbers: Joe and Kuo
 * (Constructing Sobol sequences with better two-dimensional projections, 2008), their first dimensions. */
#include "ir/ops/accumulate.h"

#define DIGITS 31
#define DEGREE_MAX 10
/* The primitive polynomial of each dimension, a bit for each coefficient, and the first direction numbers, as many as its degree. */
static const struct {
  uint16_t polynomial, first[DEGREE_MAX];
} dimensions[] = {
  {1, {1}},
  {3, {1}},
  {7, {1, 3}},
  {11, {1, 3, 1}},
  {13, {1, 1, 1}},
  {19, {1, 1, 3, 3}},
  {25, {1, 3, 5, 13}},
  {37, {1, 1, 5, 5, 17}},
  {41, {1, 1, 5, 5, 5}},
  {47, {1, 1, 7, 11, 19}},
  {55, {1, 1, 5, 1, 1}},
  {59, {1, 1, 1, 3, 11}},
  {61, {1, 3, 5, 5, 31}},
  {67, {1, 3, 3, 9, 7, 49}},
  {91, {1, 1, 1, 15, 21, 21}},
  {97, {1, 3, 1, 13, 27, 49}},
  {103, {1, 1, 1, 15, 7, 5}},
  {109, {1, 3, 1, 15, 13, 25}},
  {115, {1, 1, 5, 5, 19, 61}},
  {131, {1, 3, 7, 11, 23, 15, 103}},
  {137, {1, 3, 7, 13, 13, 15, 69}},
  {143, {1, 1, 3, 13, 7, 35, 63}},
  {145, {1, 3, 5, 9, 1, 25, 53}},
  {157, {1, 3, 1, 13, 9, 35, 107}},
  {167, {1, 3, 1, 5, 27, 61, 31}},
  {171, {1, 1, 5, 11, 19, 41, 61}},
  {185, {1, 3, 5, 3, 3, 13, 69}},
  {191, {1, 1, 7, 13, 1, 19, 1}},
  {193, {1, 3, 7, 5, 13, 19, 59}},
  {203, {1, 1, 3, 9, 25, 29, 41}},
  {211, {1, 3, 5, 13, 23, 1, 55}},
  {213, {1, 3, 7, 3, 13, 59, 17}},
  {229, {1, 3, 1, 3, 5, 53, 69}},
  {239, {1, 1, 5, 5, 23, 33, 13}},
  {241, {1, 1, 7, 7, 1, 61, 123}},
  {247, {1, 1, 7, 9, 13, 61, 49}},
  {253, {1, 3, 3, 5, 3, 55, 33}},
  {285, {1, 3, 1, 15, 31, 13, 49, 245}},
  {299, {1, 3, 5, 15, 31, 59, 63, 97}},
  {301, {1, 3, 1, 11, 11, 11, 77, 249}},
  {333, {1, 3, 1, 11, 27, 43, 71, 9}},
  {351, {1, 1, 7, 15, 21, 11, 81, 45}},
  {355, {1, 3, 7, 3, 25, 31, 65, 79}},
  {357, {1, 3, 1, 1, 19, 11, 3, 205}},
  {361, {1, 1, 5, 9, 19, 21, 29, 157}},
  {369, {1, 3, 7, 11, 1, 33, 89, 185}},
  {391, {1, 3, 3, 3, 15, 9, 79, 71}},
  {397, {1, 3, 7, 11, 15, 39, 119, 27}},
  {425, {1, 1, 3, 1, 11, 31, 97, 225}},
  {451, {1, 1, 1, 3, 23, 43, 57, 177}},
  {463, {1, 3, 7, 7, 17, 17, 37, 71}},
  {487, {1, 3, 1, 5, 27, 63, 123, 213}},
  {501, {1, 1, 3, 5, 11, 43, 53, 133}},
  {529, {1, 3, 5, 5, 29, 17, 47, 173, 479}},
  {539, {1, 3, 3, 11, 3, 1, 109, 9, 69}},
  {545, {1, 1, 1, 5, 17, 39, 23, 5, 343}},
  {557, {1, 3, 1, 5, 25, 15, 31, 103, 499}},
  {563, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
  {601, {1, 1, 5, 11, 9, 29, 97, 231, 363}},
  {607, {1, 1, 5, 15, 19, 45, 41, 7, 383}},
  {617, {1, 3, 7, 7, 31, 19, 83, 137, 221}},
  {623, {1, 1, 1, 3, 23, 15, 111, 223, 83}},
  {631, {1, 1, 5, 13, 31, 15, 55, 25, 161}},
  {637, {1, 1, 3, 13, 25, 47, 39, 87, 257}},
  {647, {1, 1, 1, 11, 21, 53, 125, 249, 293}},
  {661, {1, 1, 7, 11, 11, 7, 57, 79, 323}},
  {675, {1, 1, 5, 5, 17, 13, 81, 3, 131}},
  {677, {1, 1, 7, 13, 23, 7, 65, 251, 475}},
  {687, {1, 3, 5, 1, 9, 43, 3, 149, 11}},
  {695, {1, 1, 3, 13, 31, 13, 13, 255, 487}},
  {701, {1, 3, 3, 1, 5, 63, 89, 91, 127}},
  {719, {1, 1, 3, 3, 1, 19, 123, 127, 237}},
  {721, {1, 1, 5, 7, 23, 31, 37, 243, 289}},
  {731, {1, 1, 5, 11, 17, 53, 117, 183, 491}},
  {757, {1, 1, 1, 5, 1, 13, 13, 209, 345}},
  {761, {1, 1, 3, 15, 1, 57, 115, 7, 33}},
  {787, {1, 3, 1, 11, 7, 43, 81, 207, 175}},
  {789, {1, 3, 1, 1, 15, 27, 63, 255, 49}},
  {799, {1, 3, 5, 3, 27, 61, 105, 171, 305}},
  {803, {1, 1, 5, 3, 1, 3, 57, 249, 149}},
  {817, {1, 1, 3, 5, 5, 57, 15, 13, 159}},
  {827, {1, 1, 1, 11, 7, 11, 105, 141, 225}},
  {847, {1, 3, 3, 5, 27, 59, 121, 101, 271}},
  {859, {1, 3, 5, 9, 11, 49, 51, 59, 115}},
  {865, {1, 1, 7, 1, 23, 45, 125, 71, 419}},
  {875, {1, 1, 3, 5, 23, 5, 105, 109, 75}},
  {877, {1, 1, 7, 15, 7, 11, 67, 121, 453}},
  {883, {1, 3, 7, 3, 9, 13, 31, 27, 449}},
  {895, {1, 3, 1, 15, 19, 39, 39, 89, 15}},
  {901, {1, 1, 1, 1, 1, 33, 73, 145, 379}},
  {911, {1, 3, 1, 15, 15, 43, 29, 13, 483}},
  {949, {1, 1, 7, 3, 19, 27, 85, 131, 431}},
  {953, {1, 3, 3, 3, 5, 35, 23, 195, 349}},
  {967, {1, 3, 3, 7, 9, 27, 39, 59, 297}},
  {971, {1, 1, 3, 9, 11, 17, 13, 241, 157}},
  {973, {1, 3, 7, 15, 25, 57, 33, 189, 213}},
  {981, {1, 1, 7, 1, 9, 55, 73, 83, 217}},
  {985, {1, 3, 3, 13, 19, 27, 23, 113, 249}},
  {995, {1, 3, 5, 3, 23, 43, 3, 253, 479}},
  {1001, {1, 1, 5, 5, 11, 5, 45, 117, 217}},
  {1019, {1, 3, 3, 7, 29, 37, 33, 123, 147}},
  {1033, {1, 3, 1, 15, 5, 5, 37, 227, 223, 459}},
  {1051, {1, 1, 7, 5, 5, 39, 63, 255, 135, 487}},
  {1063, {1, 3, 1, 7, 9, 7, 87, 249, 217, 599}},
  {1069, {1, 1, 3, 13, 9, 47, 7, 225, 363, 247}},
  {1125, {1, 3, 7, 13, 19, 13, 9, 67, 9, 737}},
  {1135, {1, 3, 5, 5, 19, 59, 7, 41, 319, 677}},
  {1153, {1, 1, 5, 3, 31, 63, 15, 43, 207, 789}},
  {1163, {1, 1, 7, 9, 13, 39, 3, 47, 497, 169}},
  {1221, {1, 3, 1, 7, 21, 17, 97, 19, 415, 905}},
  {1239, {1, 3, 7, 1, 3, 31, 71, 111, 165, 127}},
  {1255, {1, 1, 5, 11, 1, 61, 83, 119, 203, 847}},
  {1267, {1, 3, 3, 13, 9, 61, 19, 97, 47, 35}},
  {1279, {1, 1, 7, 7, 15, 29, 63, 95, 417, 469}},
  {1293, {1, 3, 1, 9, 25, 9, 71, 57, 213, 385}},
  {1305, {1, 3, 5, 13, 31, 47, 101, 57, 39, 341}},
  {1315, {1, 1, 3, 3, 31, 57, 125, 173, 365, 551}},
  {1329, {1, 3, 7, 1, 13, 57, 67, 157, 451, 707}},
  {1341, {1, 1, 1, 7, 21, 13, 105, 89, 429, 965}},
  {1347, {1, 1, 5, 9, 17, 51, 45, 119, 157, 141}},
  {1367, {1, 3, 7, 7, 13, 45, 91, 9, 129, 741}},
  {1387, {1, 3, 7, 1, 23, 57, 67, 141, 151, 571}},
  {1413, {1, 1, 3, 11, 17, 47, 93, 107, 375, 157}},
  {1423, {1, 3, 3, 5, 11, 21, 43, 51, 169, 915}},
  {1431, {1, 1, 5, 3, 15, 55, 101, 67, 455, 625}},
  {1441, {1, 3, 5, 9, 1, 23, 29, 47, 345, 595}},
  {1479, {1, 3, 7, 7, 5, 49, 29, 155, 323, 589}},
  {1509, {1, 3, 3, 7, 5, 41, 127, 61, 261, 717}},
};
#define DIMENSIONS (int64_t)(sizeof dimensions / sizeof *dimensions)

/* Number k of dimension j, as a fraction of 2^DIGITS. */
static void direction_numbers(int64_t j, int64_t *out) {
  int degree = 0;
  while (dimensions[j].polynomial >> (degree + 1))
    degree++;
  int64_t m[DIGITS];
  for (int k = 0; k < DIGITS; k++) {
    if (k < degree || degree == 0) {
      m[k] = degree ? dimensions[j].first[k] : 1;
    } else {
      m[k] = m[k - degree];
      for (int i = 1; i <= degree; i++)
        if (dimensions[j].polynomial >> (degree - i) & 1)
          m[k] ^= m[k - i] << i;
    }
    out[k] = m[k] << (DIGITS - 1 - k);
  }
}

static status direction_table(struct op_call *c, int64_t rows, value_id *out) {
  int64_t *numbers = ARENA_ARRAY(op_arena(c), int64_t, rows * DIGITS);
  for (int64_t j = 0; j < rows; j++)
    direction_numbers(j, numbers + j * DIGITS);
  dim dims[2] = {op_dim(c, rows), op_dim(c, DIGITS)};
  *out = op_constant(c, DTYPE_INT64, 2, dims, numbers);
  return OK;
}

static expr_id in_range(struct kb *kb, expr_id low, expr_id x) { return expr_binary(kb->k, SCALAR_LE, low, x); }

static void check_request(struct kb *kb, expr_id dim_count, expr_id results, expr_id skip) {
  expr_id one = kb_int(kb, 1), largest = kb_int(kb, INT32_MAX), most = kb_int(kb, DIMENSIONS);
  kb_check(kb, in_range(kb, one, dim_count), INVALID_ARGUMENT, "dim must be at least one", NO_EXPR, NO_EXPR);
  kb_check(kb, in_range(kb, one, results), INVALID_ARGUMENT, "num_results must be at least one", NO_EXPR, NO_EXPR);
  kb_check(kb, in_range(kb, kb_int(kb, 0), skip), INVALID_ARGUMENT, "skip must be non-negative", NO_EXPR, NO_EXPR);
  kb_check(kb, kb_lt(kb, results, kb_sub(kb, largest, skip)), INVALID_ARGUMENT, "num_results+skip must be less than %d", largest, NO_EXPR);
  kb_check(kb, kb_lt(kb, results, kb_div(kb, largest, dim_count)), INVALID_ARGUMENT, "num_results*dim must be less than %d", largest,
           NO_EXPR);
  kb_check(kb, in_range(kb, dim_count, most), UNIMPLEMENTED, "Sobol's sequence in more than %d dimensions: %d", most, dim_count);
}

/* The request's numbers are checked before memory is made for the points. */
static status check_first(struct op_call *c, const value_id in[3]) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  expr_id x[3];
  for (int i = 0; i < 3; i++)
    x[i] = kb_index(&kb, kb_load(&kb, kb_in(&kb, in[i]), NULL));
  kb.effect = true;
  check_request(&kb, x[0], x[1], x[2]);
  TRY(kb_finish(&kb));
  c->guard = c->effect;
  return OK;
}

/* dim, num_results, skip: point number skip + i + 1, of which the first is left out because it is 0 */
status build_sobol_sample(struct op_call *c) {
  static const char *const names[] = {"dim", "num_results", "skip"};
  value_id in[3], table;
  dim dims[2], *element;
  for (uint32_t i = 0; i < 3; i++) {
    TRY(op_input(c, i, &in[i]));
    if (op_value(c, in[i])->rank != 0)
      return fail(INVALID_ARGUMENT, "%s must be a scalar", names[i]);
  }
  TRY(check_first(c, in));
  for (int i = 0, count; i < 2; i++) {
    TRY(op_elements(c, in[1 - i], &element, &count));
    dims[i] = element[0];
  }
  int64_t rows = op_dim_value(c, dims[1]);
  if (rows < 1 || rows > DIMENSIONS) /* not known, or refused by the check */
    rows = DIMENSIONS;
  TRY(direction_table(c, rows, &table));
  struct kb kb;
  enum dtype dtype = op_output_dtype(c, 0);
  kb_begin(&kb, c, dtype);
  uint32_t s = kb_in(&kb, in[2]), t = kb_in(&kb, table), o = kb_out(&kb, dtype, 2, dims);
  expr_id at[2], skip = kb_index(&kb, kb_load(&kb, s, NULL)), one = kb_int(&kb, 1);
  kb_loops(&kb, LOOP_PAR, 2, dims, at);
  expr_id number = kb_get(&kb, kb_local(&kb, kb_add(&kb, kb_add(&kb, at[0], skip), one)));
  expr_id gray = kb_get(&kb, kb_local(&kb, expr_binary(kb.k, SCALAR_XOR, number, expr_binary(kb.k, SCALAR_SHR, number, one))));
  uint32_t sum = kb_local(&kb, kb_int(&kb, 0));
  expr_id k = kb_for(&kb, LOOP_SEQ, kb_int(&kb, DIGITS)), place[2] = {kb_clamp(&kb, at[1], kb_int(&kb, rows)), k};
  expr_id bit = expr_binary(kb.k, SCALAR_AND, expr_binary(kb.k, SCALAR_SHR, gray, k), one), turned = kb_load(&kb, t, place).re;
  kb_set(&kb, sum, expr_binary(kb.k, SCALAR_XOR, kb_get(&kb, sum), kb_mul(&kb, bit, turned)));
  kb_close(&kb, 1);
  expr_id fraction =
    expr_binary(kb.k, SCALAR_MUL, expr_cast(kb.k, dtype, kb_get(&kb, sum)), expr_float(kb.k, dtype, 1.0 / (INT64_C(1) << DIGITS)));
  kb_store(&kb, o, at, real_element(fraction));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
