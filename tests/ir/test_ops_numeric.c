/* Ops on constants: lowering evaluates their kernels while it compiles, so that a graph's result can be read off the flow.
 * The values are TensorFlow's. */
#include <math.h>

#include "tests/support/lowered_text.h"
#include "tests/support/test.h"

#define VALUES 48
struct op_case {
  const char *name, *graph;
  int count;
  double want[VALUES];
  status code; /* instead of values */
};

/* ---- graphs in protobuf's text form; the last node is fetched as "y" ---- */

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs attrs "} "
#define Y(op, inputs, attrs) NODE("y", op, inputs, attrs)
#define IN(name) "input: '" name "' "
#define TYPE(key, dtype) "attr { key: '" key "' value { type: " dtype " } } "
#define FLOATS TYPE("T", "DT_FLOAT")
#define DOUBLES TYPE("T", "DT_DOUBLE")
#define INT(key, value) "attr { key: '" key "' value { i: " value " } } "
#define REAL(key, value) "attr { key: '" key "' value { f: " value " } } "
#define BOOL(key) "attr { key: '" key "' value { b: true } } "
#define NOT(key) "attr { key: '" key "' value { b: false } } "
#define TEXT(key, value) "attr { key: '" key "' value { s: '" value "' } } "
#define LIST(key, values) "attr { key: '" key "' value { list { i: [" values "] } } } "
#define DIM(n) "dim { size: " #n " } "
#define CONST(name, dtype, dims, values) \
  NODE(name, "Const", "",                \
       TYPE("dtype", dtype) "attr { key: 'value' value { tensor { dtype: " dtype " tensor_shape { " dims "} " values " } } } ")
#define FLOAT(name, dims, values) CONST(name, "DT_FLOAT", dims, "float_val: [" values "]")
#define DOUBLE(name, dims, values) CONST(name, "DT_DOUBLE", dims, "double_val: [" values "]")
#define I32(name, dims, values) CONST(name, "DT_INT32", dims, "int_val: [" values "]")
#define SEED I32("seed", DIM(2), "3, -5")
#define SEEDED TYPE("Tseed", "DT_INT32")

#define IMAGE FLOAT("x", DIM(1) DIM(3) DIM(3) DIM(1), "1, 2, 3, 4, 5, 6, 7, 8, 9")
#define FILTER FLOAT("w", DIM(2) DIM(2) DIM(1) DIM(1), "1, 2, 3, 4")
#define ROW16(x) x "," x "," x "," x "," x "," x "," x "," x "," x "," x "," x "," x "," x "," x "," x "," x ","
#define EACH16(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
#define ROW64(x) ROW16(x) ROW16(x) ROW16(x) ROW16(x)
#define ROW256(x) ROW64(x) ROW64(x) ROW64(x) ROW64(x)
#define GRADIENT FLOAT("g", DIM(1) DIM(2) DIM(2) DIM(1), "1, 2, 3, 4")
#define STEP2 FLOATS LIST("strides", "1, 2, 2, 1") TEXT("padding", "SAME")
#define SQUARE(name, values) DOUBLE(name, DIM(2) DIM(2), values)

static const struct op_case cases[] = {
  {"a product with both operands turned",
   FLOAT("a", DIM(3) DIM(2), "1, 2, 3, 4, 5, 6") FLOAT("b", DIM(2) DIM(3), "1, 0, 2, 0, 1, 3")
     Y("MatMul", IN("a") IN("b"), FLOATS BOOL("transpose_a") BOOL("transpose_b")),
   4,
   {11, 18, 14, 22},
   OK},
  {"a product of sizes that disagree is refused",
   FLOAT("a", DIM(2) DIM(4), "0") FLOAT("b", DIM(3) DIM(2), "0") Y("MatMul", IN("a") IN("b"), FLOATS),
   0,
   {0},
   INVALID_ARGUMENT},
  {"einsum reads the diagonal",
   FLOAT("a", DIM(2) DIM(2), "1, 2, 3, 4") Y("Einsum", IN("a"), FLOATS INT("N", "1") TEXT("equation", "ii->i")),
   2,
   {1, 4},
   OK},
  {"softmax of large logits does not overflow",
   FLOAT("a", DIM(1) DIM(3), "1000, 1000, -1000") Y("Softmax", IN("a"), FLOATS),
   3,
   {0.5, 0.5, 0},
   OK},
  {"a label outside of the classes is refused",
   FLOAT("a", DIM(1) DIM(3), "1, 2, 3") I32("l", DIM(1), "3")
     Y("SparseSoftmaxCrossEntropyWithLogits", IN("a") IN("l"), FLOATS TYPE("Tlabels", "DT_INT32")),
   0,
   {0},
   INVALID_ARGUMENT},
  {"the first of equal elements is the largest",
   FLOAT("a", DIM(4), "1, 7, 7, 2") I32("d", "", "0") Y("ArgMax", IN("a") IN("d"), FLOATS),
   1,
   {1},
   OK},
  {"the k largest keep the order of equal ones",
   FLOAT("a", DIM(5), "2, 9, 4, 9, 1") I32("k", "", "3") Y("TopKV2", IN("a") IN("k"), FLOATS),
   3,
   {9, 9, 4},
   OK},
  {"a window of XLA's Gather has no negative size",
   FLOAT("a", DIM(3), "1, 2, 3") I32("i", "", "1") I32("n", DIM(1), "-1")
     Y("XlaGather", IN("a") IN("i") IN("n"),
       FLOATS TYPE("Tindices", "DT_INT32") TEXT("dimension_numbers", "\\010\\000\\030\\000") NOT("indices_are_sorted")),
   0,
   {0},
   INVALID_ARGUMENT},
  {"a shape that is to be broadcast is a vector",
   I32("a", DIM(1) DIM(2), "1, 2") I32("b", DIM(2), "1, 2") Y("BroadcastArgs", IN("a") IN("b"), TYPE("T", "DT_INT32")),
   0,
   {0},
   INVALID_ARGUMENT},
  {"a reducer of XLA's gives what it takes",
   "library { function { signature { name: 'f' input_arg { name: 'a' type: DT_FLOAT } input_arg { name: 'b' type: DT_FLOAT } "
   "output_arg { name: 'c' type: DT_DOUBLE } } node_def { name: 'c' op: 'Cast' input: 'a' " TYPE("SrcT", "DT_FLOAT")
     TYPE("DstT", "DT_DOUBLE") "} ret { key: 'c' value: 'c:y:0' } } } " FLOAT("a", DIM(3), "1, 2, 3") FLOAT("b", "", "0")
       Y("XlaReduce", IN("a") IN("b"), FLOATS LIST("dimensions_to_reduce", "0") "attr { key: 'reducer' value { func { name: 'f' } } } "),
   0,
   {0},
   INVALID_ARGUMENT},
  {"an exclusive sum from the end starts with 0",
   FLOAT("a", DIM(3), "1, 2, 4") I32("d", "", "0") Y("Cumsum", IN("a") IN("d"), FLOATS BOOL("exclusive") BOOL("reverse")),
   3,
   {6, 4, 0},
   OK},

  {"convolution pads at the end first", IMAGE FILTER Y("Conv2D", IN("x") IN("w"), STEP2), 4, {37, 21, 23, 9}, OK},
  {"of many channels a convolution sums the taps inside",
   FLOAT("x", DIM(1) DIM(5) DIM(1) DIM(16), ROW16("1") ROW16("10") ROW16("100") ROW16("1000") "10000")
     FLOAT("w", DIM(3) DIM(1) DIM(16) DIM(1), ROW16("1") ROW16("2") "3") Y("Conv2D", IN("x") IN("w"), STEP2),
   3,
   {512, 51360, 336000},
   OK},
  {"of many channels the gradient of its input is summed with a turned filter, over the columns inside",
   I32("s", DIM(4), "1, 1, 3, 16") FLOAT("g", DIM(1) DIM(1) DIM(3) DIM(16), ROW16("1") ROW16("10") ROW16("100") "100")
     FLOAT("w", DIM(1) DIM(2) DIM(16) DIM(16), ROW256("1") ROW256("2") "2")
       Y("Conv2DBackpropInput", IN("s") IN("w") IN("g"), FLOATS LIST("strides", "1, 1, 1, 1") TEXT("padding", "SAME")),
   48,
   {EACH16(16), EACH16(192), EACH16(1920)},
   OK},
  {"the gradient of a convolution's input",
   I32("s", DIM(4), "1, 3, 3, 1") FILTER GRADIENT Y("Conv2DBackpropInput", IN("s") IN("w") IN("g"), STEP2),
   9,
   {1, 2, 2, 3, 4, 6, 3, 6, 4},
   OK},
  {"the gradient of a convolution's filter",
   I32("s", DIM(4), "2, 2, 1, 1") IMAGE GRADIENT Y("Conv2DBackpropFilter", IN("x") IN("s") IN("g"), STEP2),
   4,
   {64, 26, 16, 5},
   OK},
  {"a stride of 0 is refused",
   IMAGE FILTER Y("Conv2D", IN("x") IN("w"), FLOATS LIST("strides", "1, 0, 1, 1") TEXT("padding", "SAME")),
   0,
   {0},
   INVALID_ARGUMENT},
  {"padding does not count in a mean", IMAGE Y("AvgPool", IN("x"), STEP2 LIST("ksize", "1, 2, 2, 1")), 4, {3, 4.5, 7.5, 9}, OK},
  {"windows that overlap add to the first of equal elements",
   FLOAT("x", DIM(1) DIM(3) DIM(3) DIM(1), "1") GRADIENT Y(
     "MaxPoolGrad", IN("x") IN("g") IN("g"), FLOATS LIST("ksize", "1, 2, 2, 1") LIST("strides", "1, 1, 1, 1") TEXT("padding", "VALID")),
   9,
   {1, 2, 0, 3, 4, 0, 0, 0, 0},
   OK},
  {"windows side by side give to the first of equal elements, those at the end to what they have",
   FLOAT("x", DIM(1) DIM(3) DIM(3) DIM(1), "3, 3, 1, 2, 3, 5, 5, 5, 7")
     GRADIENT Y("MaxPoolGrad", IN("x") IN("g") IN("g"), STEP2 LIST("ksize", "1, 2, 2, 1")),
   9,
   {1, 0, 0, 0, 0, 2, 3, 0, 4},
   OK},
  {"elements between windows get nothing",
   FLOAT("x", DIM(1) DIM(3) DIM(3) DIM(1), "1, 1, 9, 2, 2, 9, 9, 9, 9")
     GRADIENT Y("MaxPoolGrad", IN("x") IN("g") IN("g"), STEP2 LIST("ksize", "1, 1, 1, 1")),
   9,
   {1, 0, 2, 0, 0, 0, 3, 0, 4},
   OK},
  {"elements behind the last window get nothing",
   IMAGE FLOAT("g", DIM(1) DIM(1) DIM(1) DIM(1), "1")
     Y("MaxPoolGrad", IN("x") IN("g") IN("g"), FLOATS LIST("ksize", "1, 2, 2, 1") LIST("strides", "1, 2, 2, 1") TEXT("padding", "VALID")),
   9,
   {0, 0, 0, 0, 1, 0, 0, 0, 0},
   OK},
  {"cubic weights leave out what is outside of the image",
   FLOAT("x", DIM(1) DIM(1) DIM(3) DIM(1), "1, 2, 3") I32("s", DIM(2), "1, 5")
     Y("ResizeBicubic", IN("x") IN("s"), FLOATS BOOL("half_pixel_centers")),
   5,
   {0.92447436, 1.3063631, 2, 2.693637, 3.0755255},
   OK},

  {"uniform numbers are TensorFlow's bit for bit",
   SEED I32("s", DIM(1), "5") Y("StatelessRandomUniform", IN("s") IN("seed"), SEEDED TYPE("dtype", "DT_FLOAT")),
   5,
   {0.40462756, 0.7238133, 0.0833354, 0.11084986, 0.18788612},
   OK},
  {"normal numbers of double take two words each",
   SEED I32("s", DIM(1), "5") Y("StatelessRandomNormal", IN("s") IN("seed"), SEEDED TYPE("dtype", "DT_DOUBLE")),
   5,
   {-1.4695829979483923, -0.8482546044423914, -0.6784056845549236, -0.9558979867700058, -1.3230072623201445},
   OK},
  {"truncated normal numbers are drawn again within their group",
   SEED I32("s", DIM(1), "5") Y("StatelessTruncatedNormal", IN("s") IN("seed"), SEEDED TYPE("dtype", "DT_FLOAT")),
   5,
   {-1.3270372, -0.22033732, 1.4301591, 1.7100903, -0.2506252},
   OK},
  {"integers of a range",
   SEED I32("s", DIM(1), "5") I32("low", "", "-10") I32("high", "", "10")
     Y("StatelessRandomUniformInt", IN("s") IN("seed") IN("low") IN("high"), SEEDED TYPE("T", "DT_INT32") TYPE("dtype", "DT_INT32")),
   5,
   {0, 0, 2, -10, -3},
   OK},
  {"an empty range is refused",
   SEED I32("s", DIM(1), "5") I32("low", "", "10")
     Y("StatelessRandomUniformInt", IN("s") IN("seed") IN("low") IN("low"), SEEDED TYPE("T", "DT_INT32") TYPE("dtype", "DT_INT32")),
   0,
   {0},
   INVALID_ARGUMENT},

  {"an inverse needs row exchanges", SQUARE("a", "0, 2, 4, 0") Y("MatrixInverse", IN("a"), DOUBLES), 4, {0, 0.25, 0.5, 0}, OK},
  {"a singular matrix is refused", SQUARE("a", "1, 2, 2, 4") Y("MatrixInverse", IN("a"), DOUBLES), 0, {0}, INVALID_ARGUMENT},
  {"an exchange turns the sign of a determinant", SQUARE("a", "0, 2, 4, 1") Y("MatrixDeterminant", IN("a"), DOUBLES), 1, {-8}, OK},
  {"what is not positive definite has no factor", SQUARE("a", "1, 2, 2, 1") Y("Cholesky", IN("a"), DOUBLES), 4, {NAN, 0, NAN, NAN}, OK},
  {"eigenvalues ascend", SQUARE("a", "2, 1, 1, 2") Y("SelfAdjointEigV2", IN("a"), DOUBLES NOT("compute_v")), 2, {1, 3}, OK},
  {"singular values descend",
   SQUARE("a", "3, 0, 4, 5") Y("Svd", IN("a"), DOUBLES NOT("compute_uv")),
   2,
   {6.708203932499369, 2.23606797749979},
   OK},
  {"a real transform back from its half",
   CONST("x", "DT_COMPLEX64", DIM(2), "scomplex_val: [6, 0, -1.5, 0.5]") I32("n", DIM(1), "3") Y("IRFFT", IN("x") IN("n"), ""),
   3,
   {1, 2.211325, 2.788675},
   OK},

  {"the range of a fake quantisation is moved onto a step",
   FLOAT("x", DIM(3), "-2, 0.1, 3") Y("FakeQuantWithMinMaxArgs", IN("x"), REAL("min", "-1") REAL("max", "1") INT("num_bits", "3")),
   3,
   {-0.8571429, 0, 1.1428572},
   OK},
  {"the coarser side of a range decides its steps",
   FLOAT("x", DIM(3), "-1.2, 0.3, 0.9") FLOAT("a", "", "-1") FLOAT("b", "", "1")
     Y("QuantizeAndDequantizeV2", IN("x") IN("a") IN("b"), FLOATS BOOL("range_given") INT("num_bits", "4")),
   3,
   {-1.1428572, 0.2857143, 0.8571429},
   OK},
  {"the incomplete gamma function by series and fraction",
   FLOAT("a", DIM(4), "0, 1, 0.5, 30") FLOAT("x", DIM(4), "0, 2, 0.3, 20") Y("Igamma", IN("a") IN("x"), FLOATS),
   4,
   {0, 0.86466473, 0.561422, 0.021818219},
   OK},
  {"the inverse normal distribution in its tail",
   DOUBLE("x", DIM(3), "1e-20, 0.5, 1") Y("Ndtri", IN("x"), DOUBLES),
   3,
   {-9.262340089798408, 0, INFINITY},
   OK},
  {"the modified Bessel function I0 is even",
   DOUBLE("x", DIM(4), "-3, 0, 0.5, 10") Y("BesselI0", IN("x"), DOUBLES),
   4,
   {4.880792585865024, 1, 1.0634833707413238, 2815.7166284662544},
   OK},
  {"the modified Bessel function I1 is odd",
   DOUBLE("x", DIM(4), "-3, 0, 0.5, 10") Y("BesselI1", IN("x"), DOUBLES),
   4,
   {-3.9533702174026093, 0, 0.2578943053908962, 2670.988303701255},
   OK},
};

/* ---- running one ---- */

static double element(const struct flow_value *v, int i) {
  int64_t bits = 0;
  memcpy(&bits, (const char *)v->data + (size_t)i * dtype_size(v->dtype), dtype_size(v->dtype));
  return v->dtype == DTYPE_INT32 ? (double)(int32_t)bits : expr_bits_to_double(v->dtype, bits);
}

static bool is_near(double got, double want, enum dtype dtype) {
  if (isnan(want) || isinf(want))
    return isnan(want) ? isnan(got) : got == want;
  double tolerance = dtype == DTYPE_DOUBLE ? 1e-12 : 1e-6;
  return fabs(got - want) <= tolerance * fmax(1, fabs(want));
}

static void check_values(const struct op_case *c, const struct build *b) {
  const struct flow_value *v = lowered_text_value(b);
  if (!v->data)
    test_fail("%s: not evaluated", c->name);
  for (int i = 0; i < c->count; i++)
    if (!is_near(element(v, i), c->want[i], v->dtype))
      test_fail("%s: element %d is %.9g, not %.9g", c->name, i, element(v, i), c->want[i]);
}

static void ops_on_constants_give_what_tensorflow_gives(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct build b;
    status s = lowered_text_read(&b, cases[i].graph);
    if (s != cases[i].code)
      test_fail("%s: %s: %s", cases[i].name, status_name(s), status_text());
    if (s == OK)
      check_values(&cases[i], &b);
    lowered_text_deinit(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ops_on_constants_give_what_tensorflow_gives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
