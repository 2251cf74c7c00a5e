/* onednn_peer: the convolutions of bench_convs.py by oneDNN's own primitives (packages libdnnl2 and libdnnl-dev), told what to do by lines:
 *
 *   conv f32|bf16 IMAGES HEIGHT WIDTH CHANNELS OUTPUTS TAPS_H TAPS_W STRIDE BEFORE_H BEFORE_W OUT_H OUT_W     answers "ready"
 *   y|dx|dw STEPS                                        answers the processor's seconds of one step, the least of both layouts
 *
 * OUTPUTS 0: depthwise. Each form is made twice: of images as TensorFlow has them (NHWC), and of the layout that oneDNN asks for; filters
 * are as it asks for in both, and nothing is counted for turning operands to and fro. Which is the faster is timed anew for each answer. */
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DIMS_MAX 5
#define ARGS 3

static void check(dnnl_status_t s, const char *what) {
  if (s == dnnl_success)
    return;
  fprintf(stderr, "onednn_peer: %s: status %d\n", what, (int)s);
  exit(1);
}
#define CHECK(call) check(call, #call)

enum form { FORM_Y, FORM_DX, FORM_DW, FORMS };
static const char *const form_names[FORMS] = {"y", "dx", "dw"};

struct shape {
  char type[8];
  dnnl_dim_t images, side[2], channels, outputs, taps[2], stride, out[2];
  dnnl_dims_t before;
};

/* A primitive with its operands. */
struct made {
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t args[ARGS];
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

/* ---- descriptors ---- */

struct operands {
  dnnl_memory_desc_t x, w, y;
};

static dnnl_data_type_t type_of(const struct shape *c) { return !strcmp(c->type, "bf16") ? dnnl_bf16 : dnnl_f32; }

static void describe(dnnl_memory_desc_t *to, const struct shape *c, int rank, const dnnl_dim_t *dims, dnnl_format_tag_t tag) {
  CHECK(dnnl_memory_desc_init_by_tag(to, rank, dims, type_of(c), tag));
}

static struct operands operands_of(const struct shape *c, int any) {
  struct operands o;
  dnnl_dim_t y_channels = c->outputs ? c->outputs : c->channels;
  dnnl_dims_t x = {c->images, c->channels, c->side[0], c->side[1]}, y = {c->images, y_channels, c->out[0], c->out[1]};
  dnnl_dims_t dense = {c->outputs, c->channels, c->taps[0], c->taps[1]};
  dnnl_dims_t depthwise = {c->channels, 1, 1, c->taps[0], c->taps[1]};
  describe(&o.x, c, 4, x, any ? dnnl_format_tag_any : dnnl_nhwc);
  describe(&o.y, c, 4, y, any ? dnnl_format_tag_any : dnnl_nhwc);
  if (c->outputs)
    describe(&o.w, c, 4, dense, dnnl_format_tag_any);
  else
    describe(&o.w, c, 5, depthwise, dnnl_format_tag_any);
  return o;
}

static dnnl_dim_t pad_after(const struct shape *c, int axis) {
  return (c->out[axis] - 1) * c->stride + c->taps[axis] - c->side[axis] - c->before[axis];
}

static dnnl_primitive_desc_t primitive_desc(const struct shape *c, enum form form, const struct operands *o) {
  dnnl_convolution_desc_t d;
  dnnl_primitive_desc_t forward, made;
  dnnl_dims_t strides = {c->stride, c->stride}, after = {pad_after(c, 0), pad_after(c, 1)};
  CHECK(dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, &o->x, &o->w, NULL, &o->y, strides,
                                           c->before, after));
  CHECK(dnnl_primitive_desc_create(&forward, &d, NULL, engine, NULL));
  if (form == FORM_Y)
    return forward;
  if (form == FORM_DX)
    CHECK(dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &o->x, &o->w, &o->y, strides, c->before, after));
  else
    CHECK(dnnl_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, &o->x, &o->w, NULL, &o->y, strides, c->before, after));
  CHECK(dnnl_primitive_desc_create(&made, &d, NULL, engine, forward));
  CHECK(dnnl_primitive_desc_destroy(forward));
  return made;
}

/* ---- primitives ---- */

/* Operands of some small numbers. */
static void fill(dnnl_memory_t memory, const dnnl_memory_desc_t *d) {
  size_t size = dnnl_memory_desc_get_size(d);
  void *data;
  CHECK(dnnl_memory_get_data_handle(memory, &data));
  for (size_t i = 0; d->data_type == dnnl_f32 && i < size / 4; i++)
    ((float *)data)[i] = (float)(i % 37) / 37 - 0.5f;
  for (size_t i = 0; d->data_type == dnnl_bf16 && i < size / 2; i++)
    ((unsigned short *)data)[i] = (unsigned short)(0x3f00 + i % 37);
}

static dnnl_exec_arg_t operand(dnnl_primitive_desc_t pd, dnnl_query_t query, int arg) {
  dnnl_exec_arg_t made = {.arg = arg};
  const dnnl_memory_desc_t *d = dnnl_primitive_desc_query_md(pd, query, 0);
  CHECK(dnnl_memory_create(&made.memory, d, engine, DNNL_MEMORY_ALLOCATE));
  fill(made.memory, d);
  return made;
}

static struct made make(const struct shape *c, enum form form, int any) {
  struct made m;
  struct operands o = operands_of(c, any);
  dnnl_primitive_desc_t pd = primitive_desc(c, form, &o);
  CHECK(dnnl_primitive_create(&m.primitive, pd));
  m.args[0] = form == FORM_DX ? operand(pd, dnnl_query_diff_src_md, DNNL_ARG_DIFF_SRC) : operand(pd, dnnl_query_src_md, DNNL_ARG_SRC);
  m.args[1] =
    form == FORM_DW ? operand(pd, dnnl_query_diff_weights_md, DNNL_ARG_DIFF_WEIGHTS) : operand(pd, dnnl_query_weights_md, DNNL_ARG_WEIGHTS);
  m.args[2] = form == FORM_Y ? operand(pd, dnnl_query_dst_md, DNNL_ARG_DST) : operand(pd, dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST);
  CHECK(dnnl_primitive_desc_destroy(pd));
  return m;
}

static void unmake(struct made *m) {
  for (int i = 0; i < ARGS; i++)
    CHECK(dnnl_memory_destroy(m->args[i].memory));
  CHECK(dnnl_primitive_destroy(m->primitive));
}

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double step(const struct made *m, int steps) {
  double begin = processor_seconds();
  for (int i = 0; i < steps; i++)
    CHECK(dnnl_primitive_execute(m->primitive, stream, ARGS, m->args));
  CHECK(dnnl_stream_wait(stream));
  return (processor_seconds() - begin) / steps;
}

/* ---- lines ---- */

static int read_shape(const char *line, struct shape *c) {
  long v[12];
  if (sscanf(line, "conv %*s %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld", v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7, v + 8,
             v + 9, v + 10, v + 11) != 12)
    return 0;
  *c = (struct shape){.images = v[0],
                      .side = {v[1], v[2]},
                      .channels = v[3],
                      .outputs = v[4],
                      .taps = {v[5], v[6]},
                      .stride = v[7],
                      .out = {v[10], v[11]},
                      .before = {v[8], v[9]}};
  return sscanf(line, "conv %7s", c->type);
}

static double least_of_layouts(const struct shape *c, enum form form, int steps) {
  double least = 0;
  for (int any = 0; any < 2; any++) {
    struct made m = make(c, form, any);
    step(&m, 1);
    double seconds = step(&m, steps);
    least = any && least < seconds ? least : seconds;
    unmake(&m);
  }
  return least;
}

static void answer(const char *line, const struct shape *c) {
  char name[8];
  int form = 0, steps;
  if (sscanf(line, "%7s %d", name, &steps) != 2 || steps < 1 || !c->images)
    check(dnnl_invalid_arguments, line);
  while (form < FORMS && strcmp(name, form_names[form]) != 0)
    form++;
  if (form == FORMS)
    check(dnnl_invalid_arguments, line);
  printf("%.9f\n", least_of_layouts(c, (enum form)form, steps));
}

int main(void) {
  char line[256];
  struct shape shape = {.images = 0};
  CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
  CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
  while (fgets(line, sizeof line, stdin)) {
    if (read_shape(line, &shape))
      printf("ready\n");
    else
      answer(line, &shape);
    fflush(stdout);
  }
  CHECK(dnnl_stream_destroy(stream));
  CHECK(dnnl_engine_destroy(engine));
  return 0;
}
