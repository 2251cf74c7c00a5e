/* Conformance of op rows: every row of ops.def that makes kernels is exercised by a form of op_row_table.h, for each of its dtypes: lowered
 * with sizes that are known and with sizes that are fed, fused with what stands around it and not, and run by the reference evaluator
 * and by code compiled for this CPU over awkward sizes. A row that is neither in the table nor among the exceptions, which
 * say why, fails the test. Every way to lower a case must give the same bits by the evaluator; code must give the evaluator's, or be within
 * last places where a sum may be regrouped or a function of libm is in it.
 *
 * ROWS_OP=Name runs one op alone and says what it does; ROWS_ALL=1 every combination of dtype, attributes and way of lowering (minutes). */
#include <execinfo.h>
#include <signal.h>
#include <sys/wait.h>

#include "compiler/build.h"
#include "compiler/pass/pass.h"
#include "compiler/read/read.h"
#include "ir/ops/op_rows.h"
#include "tests/support/row_case.h"
#include "tests/support/test.h"
#include "tests/targets/op_row_table.h"
#include "tests/targets/op_row_reasons.h"

#ifdef __SANITIZE_ADDRESS__ /* several times as slow: what it finds does not depend on the dtype nor on how often a loop turns */
#define CASES_MAX 2
#define ELEMENTS_MAX 2000
#define WATCHES_TYPES false /* two cases of a form are too few for a value in each type */
#else
#define CASES_MAX 1000
#define ELEMENTS_MAX 20000 /* of an input; other dtypes than the first: a tenth */
#define WATCHES_TYPES true
#endif
#define ASSIGNMENTS 8
#define BATCH_KERNELS 150

static const int64_t lengths[ASSIGNMENTS] = {0, 1, 3, 7, 17, 33, 65, 130};

/* One way to lower a case. */
struct subject {
  bool fixed, fused;
  uint32_t assignment; /* fixed: the sizes */
  struct build *build;
  status refused; /* instead of a build */
  char *why;
};
struct test_case {
  const char *op;
  struct arena arena;
  struct row_case row;
  bool first, is_regrouped; /* known sizes and open ones give other bits, nearly the same values */
  struct subject subjects[8];
  uint32_t subject_count;
};
struct batch {
  VEC(struct test_case *) cases;
  VEC(struct kernel *) kernels; /* distinct */
  VEC(uint64_t) hashes;
  struct compiled compiled;
};
struct totals {
  uint32_t rows, cases, kernels, runs, reported, refused, bad;
};

static char current[200];
static bool verbose, everything;

static void sizes_make(uint32_t assignment, int64_t *sizes) {
  static const uint32_t step[ROW_LETTERS] = {1, 3, 5, 7, 1, 3}, start[ROW_LETTERS] = {0, 1, 2, 4, 5, 6};
  for (uint32_t i = 0; i < ROW_LETTERS; i++)
    sizes[i] = lengths[(assignment * step[i] + start[i]) % ASSIGNMENTS];
}

/* The sizes of an assignment, the largest ones halved until the inputs whose shapes hang on them are small enough. False: such inputs do
 * not exist. */
static bool case_sizes(const struct test_case *t, uint32_t assignment, int64_t *sizes) {
  sizes_make(assignment, sizes);
  for (uint32_t i = 0; i < t->row.input_count;) {
    int64_t dims[LIMIT_RANK], n = 1;
    int rank = row_shape(t->row.arena, t->row.inputs[i].shape, sizes, dims);
    for (int d = 0; d < rank; d++)
      n *= dims[d];
    uint32_t largest = 0;
    for (uint32_t k = 1; k < ROW_LETTERS; k++)
      largest = sizes[k] > sizes[largest] ? k : largest;
    bool sized = row_has_letter(t->row.inputs[i].shape) || strchr(t->row.inputs[i].shape, '*');
    if (n <= (t->first ? ELEMENTS_MAX : ELEMENTS_MAX / 10) || !sized || !sizes[largest]) {
      i++;
      continue;
    }
    sizes[largest] /= 2;
    i = 0;
  }
  bool good = true;
  for (uint32_t i = 0; i < t->row.input_count && good; i++) {
    struct flow_tensor x = {0};
    good = row_input_make(&t->row, i, sizes, false, &x);
    free(x.data);
  }
  return good;
}

/* ---- lowering ---- */

static status build_specify(struct build *b, const struct row_case *c, bool fixed) {
  struct entry_spec spec = {.name = "main"};
  for (uint32_t i = 0; i < c->input_count; i++)
    if (c->inputs[i].kind != INPUT_VARIABLE && !row_is_const(&c->inputs[i], fixed)) {
      vec_push(&spec.feeds, arena_printf(&b->arena, "in%u", i));
      vec_push(&spec.feed_keys, spec.feeds.items[spec.feeds.count - 1]);
    }
  const struct node *y = &b->model.graph->nodes.items[graph_find(b->model.graph, "y")];
  for (uint32_t i = 0; i < y->output_count; i++) {
    const char *wrapped = arena_printf(&b->arena, "out%u", i);
    if (dtype_base(y->output_dtypes[i]) == DTYPE_RESOURCE)
      continue;
    vec_push(&spec.fetches, graph_find(b->model.graph, wrapped) == NO_NODE ? arena_printf(&b->arena, "y:%u", i) : wrapped);
    vec_push(&spec.fetch_keys, spec.fetches.items[i]);
  }
  if (!spec.fetches.count)
    vec_push(&spec.targets, "y");
  vec_push(&b->specs, spec);
  return OK;
}

static status flow_verify_kernels(const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (n && n->op == FLOW_KERNEL)
      TRY(kernel_verify(n->kernel));
    for (uint32_t i = 0; n && i < n->region_count; i++)
      TRY(flow_verify_kernels(n->branches[i]));
  }
  return OK;
}

static status build_passes(struct build *b, const struct row_case *c, const struct subject *s, const int64_t *sizes) {
  const char *text = row_graph_text(c, s->fixed, sizes, NULL, 0);
  if (!text)
    return fail(OUT_OF_RANGE, "no such constants");
  TRY(model_parse(text, strlen(text), &b->arena, &b->model));
  TRY(registry_check(b->model.graph));
  const struct node *y = &b->model.graph->nodes.items[graph_find(b->model.graph, "y")];
  text = row_graph_text(c, s->fixed, sizes, y->output_dtypes, y->output_count);
  TRY(model_parse(text, strlen(text), &b->arena, &b->model));
  TRY(registry_check(b->model.graph));
  TRY(build_specify(b, c, s->fixed));
  TRY(pass_place(b));
  TRY(pass_lower(b));
  TRY(pass_dead(b));
  if (s->fused)
    TRY(pass_fuse(b));
  for (uint32_t e = 0; e < b->entries.count; e++)
    TRY(flow_verify_kernels(b->entries.items[e].flow));
  return OK;
}

static void case_lower(struct test_case *t, bool fixed, bool fused, uint32_t assignment) {
  int64_t sizes[ROW_LETTERS];
  struct subject s = {.fixed = fixed, .fused = fused, .assignment = assignment};
  if (!case_sizes(t, assignment, sizes) && fixed)
    return;
  struct build *b = calloc(1, sizeof *b);
  arena_init(&b->arena);
  cluster_local(&b->arena, &b->cluster);
  s.refused = build_passes(b, &t->row, &s, sizes);
  if (s.refused == OK) {
    s.build = b;
  } else {
    s.why = arena_strdup(&t->arena, status_text());
    arena_deinit(&b->arena);
    free(b);
  }
  t->subjects[t->subject_count++] = s;
}

static uint32_t batch_find(const struct batch *b, uint64_t hash) {
  for (uint32_t i = 0; i < b->hashes.count; i++)
    if (b->hashes.items[i] == hash)
      return i;
  return UINT32_MAX;
}

static void batch_add_kernels(struct batch *batch, struct arena *arena, const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && i < n->region_count; i++)
      batch_add_kernels(batch, arena, n->branches[i]);
    uint64_t hash = n && n->op == FLOW_KERNEL ? kernel_hash(n->kernel) : 0;
    if (!hash || batch_find(batch, hash) != UINT32_MAX)
      continue;
    n->kernel->name = arena_printf(arena, "k%u_%s", batch->kernels.count, n->kernel->name);
    vec_push(&batch->kernels, n->kernel);
    vec_push(&batch->hashes, hash);
  }
}

/* ---- running ---- */

static const struct kernel_code *code_of(void *self, const struct kernel *k) {
  struct batch *b = self;
  return &b->compiled.code[batch_find(b, kernel_hash(k))];
}

struct result {
  enum flow_outcome outcome;
  status code;
  struct flow_tensor tensors[ROW_INPUTS * 2];
  uint32_t count;
  char what[400];
};

static void result_free(struct result *r) {
  for (uint32_t i = 0; i < r->count; i++)
    free(r->tensors[i].data);
  r->count = 0;
}

/* The variables of a build: those of the graph from the case's inputs, those of ops (random counters) zero. */
static struct flow_tensor *vars_make(const struct test_case *t, const struct build *b, const int64_t *sizes, bool specials) {
  struct flow_tensor *vars = calloc(b->vars.count + 1, sizeof *vars);
  for (uint32_t v = 0; v < b->vars.count; v++) {
    const struct flow_var *var = &b->vars.items[v];
    uint32_t number;
    if (var->zero_initial) {
      vars[v] = (struct flow_tensor){.dtype = var->dtype, .rank = var->rank};
      memcpy(vars[v].dims, var->dims, sizeof vars[v].dims);
      size_t bytes = (size_t)flow_tensor_count(&vars[v]) * dtype_size(var->dtype);
      vars[v].data = aligned_block(bytes);
      memset(vars[v].data, 0, bytes);
    } else if (sscanf(var->name, "in%u", &number) == 1) {
      row_input_make(&t->row, number, sizes, specials, &vars[v]);
    }
  }
  return vars;
}

static void subject_run(const struct test_case *t, const struct subject *s, uint32_t assignment, struct batch *batch, struct result *out) {
  int64_t sizes[ROW_LETTERS];
  struct flow_tensor feeds[ROW_INPUTS];
  uint32_t feed_count = 0;
  bool specials = assignment & 1;
  *out = (struct result){.outcome = FLOW_MISFIT};
  case_sizes(t, assignment, sizes);
  for (uint32_t i = 0; i < t->row.input_count; i++)
    if (t->row.inputs[i].kind != INPUT_VARIABLE && !row_is_const(&t->row.inputs[i], s->fixed))
      row_input_make(&t->row, i, sizes, specials, &feeds[feed_count++]);
  for (uint32_t e = 0; e < s->build->entries.count && out->outcome == FLOW_MISFIT; e++) {
    const struct entry *entry = &s->build->entries.items[e];
    if (entry->failed)
      continue;
    result_free(out);
    out->count = entry->fetches.count + s->build->vars.count;
    memset(out->tensors, 0, sizeof out->tensors);
    struct flow_runner r = {.flow = entry->flow,
                            .code_of = code_of,
                            .self = batch,
                            .feeds = feeds,
                            .fetches = out->tensors,
                            .vars = vars_make(t, s->build, sizes, specials)};
    out->outcome = flow_run(&r);
    out->code = r.code;
    memcpy(out->what, r.what, sizeof out->what);
    for (uint32_t v = 0; v < s->build->vars.count; v++)
      out->tensors[entry->fetches.count + v] = r.vars[v];
    free(r.vars);
  }
  for (uint32_t i = 0; i < feed_count; i++)
    free(feeds[i].data);
}

static const char *subject_text(const struct test_case *t, const struct subject *s, uint32_t assignment, char *text, size_t size) {
  int64_t n[ROW_LETTERS];
  case_sizes(t, assignment, n);
  int at = snprintf(text, size, "%s", t->op);
  for (uint32_t i = 0; i < t->row.type_count; i++)
    at += snprintf(text + at, size - (size_t)at, " %s=%s", t->row.types[i].name, dtype_short(t->row.types[i].dtype));
  for (uint32_t i = 0; i < t->row.attr_count; i++)
    at += snprintf(text + at, size - (size_t)at, " %s=%.40s", t->row.attrs[i].attr->name, t->row.attrs[i].text);
  for (uint32_t i = 0; i < t->row.input_count; i++)
    at += snprintf(text + at, size - (size_t)at, " %s:%.12s", t->row.inputs[i].shape, t->row.inputs[i].fill);
  snprintf(text + at, size - (size_t)at, " (a=%lld b=%lld c=%lld, sizes %s, %s)", (long long)n[0], (long long)n[1], (long long)n[2],
           s->fixed ? "known" : "fed", s->fused ? "fused" : "not fused");
  return text;
}

/* Both ways of lowering: the same outcome, the same bits; of sums in another order nearly. */
static bool results_equal(const struct result *a, const struct result *b, bool is_regrouped, char *what, size_t size) {
  snprintf(what, size, "one way %s, another %s (%s)", a->outcome == FLOW_RAN ? "runs" : status_name(a->code),
           b->outcome == FLOW_RAN ? "runs" : status_name(b->code), *b->what ? b->what : a->what);
  if (a->outcome != b->outcome)
    return false;
  for (uint32_t i = 0; i < a->count && i < b->count && a->outcome == FLOW_RAN; i++) {
    const struct flow_tensor *x = &a->tensors[i], *y = &b->tensors[i];
    bool same = x->dtype == y->dtype && x->rank == y->rank;
    for (int d = 0; d < x->rank && same; d++)
      same = x->dims[d] == y->dims[d];
    if (!same) {
      snprintf(what, size, "output %u has another dtype or shape than by another way", i);
      return false;
    }
    double near = !is_regrouped ? 0 : dtype_size(x->dtype) < 4 ? 1e-2 : 1e-5;
    int64_t at = x->data && y->data ? first_difference(x->dtype, x->data, y->data, flow_tensor_count(x), near, near + FLOW_DENORMAL) : -1;
    if (at >= 0) {
      snprintf(what, size, "output %u, element %lld is another than by another way of lowering", i, (long long)at);
      return false;
    }
  }
  return true;
}

static void complain(struct totals *total, const struct test_case *t, const struct subject *s, uint32_t assignment, const char *what) {
  char text[600];
  fprintf(stderr, "%s: %s\n", subject_text(t, s, assignment, text, sizeof text), what);
  total->bad++;
}

static bool has_elements(const struct result *r) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->tensors[i].data && flow_tensor_count(&r->tensors[i]) > 0)
      return true;
  return false;
}

/* All subjects with these sizes. Returns whether one ran to its end and gave a value. */
static bool case_run(const struct test_case *t, uint32_t assignment, struct batch *batch, struct totals *total) {
  int64_t sizes[ROW_LETTERS];
  struct result first[2] = {0}; /* of open sizes and known ones, where those differ */
  bool have[2] = {false}, ran = false;
  if (!case_sizes(t, assignment, sizes))
    return false;
  for (uint32_t i = 0; i < t->subject_count; i++) {
    const struct subject *s = &t->subjects[i];
    struct result r = {.outcome = FLOW_REPORTED, .code = s->refused};
    char text[600];
    int way = t->is_regrouped && s->fixed;
    if (s->fixed && s->assignment != assignment)
      continue;
    snprintf(current, sizeof current, "%s", subject_text(t, s, assignment, text, sizeof text));
    if (s->build)
      subject_run(t, s, assignment, batch, &r);
    else if (s->refused == UNIMPLEMENTED)
      continue;
    else if (s->refused == INTERNAL)
      complain(total, t, s, assignment, s->why);
    else
      snprintf(r.what, sizeof r.what, "%s", s->why);
    if (r.outcome == FLOW_MISFIT) /* what the runtime says to such feeds */
      r.outcome = FLOW_REPORTED, r.code = INVALID_ARGUMENT;
    if (verbose)
      fprintf(stderr, "%s: %s %s\n", current,
              r.outcome == FLOW_RAN       ? "ran"
              : r.outcome == FLOW_FOREIGN ? "has a node of the runtime's:"
                                          : status_name(r.code),
              r.what);
    total->runs++;
    total->reported += r.outcome == FLOW_REPORTED;
    ran = ran || (r.outcome == FLOW_RAN && has_elements(&r));
    if (r.outcome == FLOW_DIFFERS)
      complain(total, t, s, assignment, r.what);
    else if (have[way] && !results_equal(&first[way], &r, false, text, sizeof text))
      complain(total, t, s, assignment, text);
    else if (!have[way] && have[!way] && !results_equal(&first[!way], &r, true, text, sizeof text))
      complain(total, t, s, assignment, text);
    if (have[way] || r.outcome == FLOW_DIFFERS || r.outcome == FLOW_FOREIGN) {
      result_free(&r);
    } else {
      first[way] = r;
      have[way] = true;
    }
  }
  result_free(&first[0]);
  result_free(&first[1]);
  return ran;
}

/* A form of an input that is empty whatever the sizes: only shapes are to compare. */
static bool wants_nothing(const struct test_case *t) {
  for (uint32_t i = 0; i < t->row.input_count; i++)
    if (strcmp(t->row.inputs[i].shape, "0") == 0)
      return true;
  return false;
}

/* The types with which an op was tried, in any form, and whether it gave a value (or tfc refuses them). */
static struct {
  struct map numbers;
  struct arena arena;
  VEC(const char *) names;
  VEC(bool) given;
} tried;

static void types_note(const struct test_case *t, bool given) {
  char text[300];
  uint32_t number;
  int at = snprintf(text, sizeof text, "%s", t->op);
  for (uint32_t i = 0; i < t->row.def->attr_count; i++) {
    const struct op_attr *attr = &t->row.def->attrs[i];
    enum dtype dtype = strcmp(attr->type, "type") == 0 ? row_type(&t->row, attr->name) : DTYPE_INVALID;
    if (dtype)
      at += snprintf(text + at, sizeof text - (size_t)at, " %s=%s", attr->name, dtype_short(dtype));
  }
  if (!map_find(&tried.numbers, text, &number)) {
    number = tried.names.count;
    vec_push(&tried.names, arena_strdup(&tried.arena, text));
    vec_push(&tried.given, false);
    map_insert(&tried.numbers, tried.names.items[number], number);
  }
  tried.given.items[number] |= given;
}

static void types_count(struct totals *total) {
  for (uint32_t i = 0; i < tried.names.count && WATCHES_TYPES; i++)
    if (!tried.given.items[i]) {
      fprintf(stderr, "%s: gave no value in any form\n", tried.names.items[i]);
      total->bad++;
    }
}

static void batch_run(struct batch *batch, struct totals *total) {
  if (batch->kernels.count)
    batch->compiled = compile_kernels(batch->kernels.items, batch->kernels.count, "native");
  total->kernels += batch->kernels.count;
  for (uint32_t i = 0; i < batch->cases.count; i++) {
    struct test_case *t = batch->cases.items[i];
    uint32_t ran = 0;
    for (uint32_t a = 0; a < ASSIGNMENTS; a++)
      ran += case_run(t, a, batch, total);
    bool refused = t->subject_count > 0;
    for (uint32_t s = 0; s < t->subject_count; s++)
      refused = refused && t->subjects[s].refused == UNIMPLEMENTED;
    total->refused += refused;
    if (!wants_nothing(t))
      types_note(t, ran || refused);
    if (verbose && refused)
      fprintf(stderr, "%s: refused: %s\n", t->op, t->subjects[0].why);
    if (!ran && t->first && !wants_nothing(t))
      complain(total, t, &t->subjects[0], 2, t->subjects[0].why ? t->subjects[0].why : "no sizes let it run");
    for (uint32_t s = 0; s < t->subject_count; s++)
      if (t->subjects[s].build) {
        arena_deinit(&t->subjects[s].build->arena);
        free(t->subjects[s].build);
      }
    arena_deinit(&t->arena);
    free(t);
  }
  if (batch->compiled.handle)
    dlclose(batch->compiled.handle);
  vec_free(&batch->cases);
  vec_free(&batch->kernels);
  vec_free(&batch->hashes);
  *batch = (struct batch){0};
}

/* ---- the table ---- */

/* With sizes for which there are no inputs, that leave one empty, or are an input's numbers and 0, as a rule there is no value to
 * compare. */
static bool case_is_empty(const struct test_case *t, uint32_t assignment) {
  int64_t sizes[ROW_LETTERS], dims[LIMIT_RANK];
  bool is_empty = !case_sizes(t, assignment, sizes);
  for (uint32_t i = 0; i < t->row.input_count; i++) {
    int rank = row_shape(t->row.arena, t->row.inputs[i].shape, sizes, dims);
    for (int d = 0; d < rank; d++)
      is_empty = is_empty || dims[d] == 0;
    for (const char *at = t->row.inputs[i].fill; *at && t->row.inputs[i].fill[0] == '=' && t->row.inputs[i].has_letter; at++)
      is_empty = is_empty || (*at >= 'a' && *at < 'a' + ROW_LETTERS && sizes[*at - 'a'] == 0);
  }
  return is_empty;
}

/* Where known sizes are such, others that are not, too. */
static void case_lower_full(struct test_case *t, bool fused, uint32_t assignment) {
  case_lower(t, true, fused, assignment);
  for (uint32_t i = 1; i < ASSIGNMENTS && case_is_empty(t, assignment); i++)
    if (!case_is_empty(t, (assignment + i) % ASSIGNMENTS)) {
      case_lower(t, true, fused, (assignment + i) % ASSIGNMENTS);
      return;
    }
}

/* The ways to lower case i: all four for the first, else one in turn (where sizes must be known: one of two). */
static void case_ways(struct test_case *t, uint32_t i, bool needs_fixed) {
  bool all = i == 0 || everything;
  uint32_t turn = needs_fixed ? 2 + i % 2 : i % 4, sizes = all ? 2 : 2 + i % 5;
  if (!needs_fixed && (all || turn == 0))
    case_lower(t, false, true, 3);
  if (!needs_fixed && (all || turn == 1))
    case_lower(t, false, false, 3);
  if (all) {
    case_lower(t, true, true, sizes);
    case_lower(t, true, false, 5);
  } else if (turn >= 2) {
    case_lower_full(t, turn == 2, sizes);
  }
}

static void form_add(struct batch *batch, const struct op_def *def, const struct row_form *form, uint32_t form_number,
                     struct totals *total) {
  uint32_t count = 1;
  for (uint32_t i = 0; i < count && i < CASES_MAX; i++) {
    struct test_case *t = calloc(1, sizeof *t);
    arena_init(&t->arena);
    t->op = def->name;
    t->first = i == 0;
    t->is_regrouped = *form->attrs == '^';
    snprintf(current, sizeof current, "%s, lowering", def->name);
    count = row_case_make(&t->row, def, form, i, form_number, &t->arena);
    case_ways(t, i, *form->attrs == '~');
    for (uint32_t s = 0; s < t->subject_count; s++)
      for (uint32_t e = 0; t->subjects[s].build && e < t->subjects[s].build->entries.count; e++)
        batch_add_kernels(batch, &t->subjects[s].build->arena, t->subjects[s].build->entries.items[e].flow);
    vec_push(&batch->cases, t);
    total->cases++;
    if (batch->kernels.count >= BATCH_KERNELS)
      batch_run(batch, total);
  }
}

static bool names_op(const char *ops, const char *op) {
  size_t n = strlen(op);
  for (const char *at = ops; (at = strstr(at, op)); at += n)
    if ((at == ops || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
      return true;
  return false;
}

static const char *exception_of(const struct op_row *row) {
  for (size_t i = 0; i < sizeof row_builder_exceptions / sizeof row_builder_exceptions[0]; i++)
    if (row_builder_exceptions[i].build == row->build)
      return row_builder_exceptions[i].why;
  for (size_t i = 0; i < sizeof row_exceptions / sizeof row_exceptions[0]; i++)
    if (names_op(row_exceptions[i].ops, row->name))
      return row_exceptions[i].why;
  return NULL;
}

static void row_run(const struct op_row *row, struct batch *batch, struct totals *total) {
  const struct op_def *def = registry_find(row->name);
  uint32_t forms = 0;
  for (size_t i = 0; def && i < sizeof row_forms / sizeof row_forms[0]; i++)
    if (names_op(row_forms[i].ops, row->name))
      form_add(batch, def, &row_forms[i], forms++, total);
  total->rows += forms > 0;
}

static void say_current(int number) {
  if (write(2, current, strlen(current)) < 0 || write(2, "\n", 1) < 0)
    _exit(3);
  void *frames[30];
  backtrace_symbols_fd(frames, backtrace(frames, 30), 2);
  signal(number, SIG_DFL);
  raise(number);
}

/* Every `step`th row from `first` on, in a process of its own; the totals come back through the pipe. */
static pid_t work(uint32_t first, uint32_t step, int *out) {
  int ends[2];
  if (pipe(ends) != 0)
    exit(2);
  fflush(NULL);
  pid_t child = fork();
  *out = ends[0];
  if (child != 0) {
    close(ends[1]);
    return child;
  }
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    signal(numbers[i], say_current);
  uint32_t count;
  const struct op_row *rows = op_rows(&count);
  struct batch batch = {0};
  struct totals total = {0};
  arena_init(&tried.arena);
  for (uint32_t i = first; i < count; i += step)
    if (!getenv("ROWS_OP") || names_op(getenv("ROWS_OP"), rows[i].name))
      row_run(&rows[i], &batch, &total);
  batch_run(&batch, &total);
  types_count(&total);
  if (write(ends[1], &total, sizeof total) != sizeof total)
    _exit(3);
  _exit(0);
}

static void compiled_rows_agree_with_the_evaluator(void **state) {
  (void)state;
  long workers = sysconf(_SC_NPROCESSORS_ONLN);
  workers = workers < 2 ? 2 : workers > 4 ? 4 : workers;
  pid_t children[4];
  int pipes[4];
  struct totals sum = {0};
  verbose = getenv("ROWS_OP") != NULL;
  everything = getenv("ROWS_ALL") != NULL;
  for (long w = 0; w < workers; w++)
    children[w] = work((uint32_t)w, (uint32_t)workers, &pipes[w]);
  for (long w = 0; w < workers; w++) {
    struct totals one = {.bad = 1};
    int end;
    if (read(pipes[w], &one, sizeof one) != sizeof one)
      fprintf(stderr, "a worker ended early\n");
    waitpid(children[w], &end, 0);
    sum.rows += one.rows, sum.cases += one.cases, sum.kernels += one.kernels, sum.runs += one.runs;
    sum.reported += one.reported, sum.refused += one.refused, sum.bad += one.bad;
  }
  printf("%u rows, %u cases (%u of dtypes that tfc refuses), %u kernels, %u runs, %u of them ending in an error\n", sum.rows, sum.cases,
         sum.refused, sum.kernels, sum.runs, sum.reported);
  if (verbose && !sum.rows)
    fprintf(stderr, "ROWS_OP=%s: no row of ops.def with an op of ir/tf_ops.txt, that makes kernels, has this name\n", getenv("ROWS_OP"));
  assert_int_equal(sum.bad, 0);
  assert_true(!verbose || sum.rows);
}

static void every_row_is_in_the_table_or_an_exception(void **state) {
  (void)state;
  uint32_t count, bad = 0;
  const struct op_row *rows = op_rows(&count);
  for (uint32_t i = 0; i < count; i++) {
    bool in_table = false;
    for (size_t f = 0; f < sizeof row_forms / sizeof row_forms[0]; f++)
      in_table = in_table || names_op(row_forms[f].ops, rows[i].name);
    if (!registry_find(rows[i].name) || in_table || exception_of(&rows[i]))
      continue;
    fprintf(stderr, "%s has neither a form in op_row_table.h nor a reason why not\n", rows[i].name);
    bad++;
  }
  assert_int_equal(bad, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_in_the_table_or_an_exception),
                                     cmocka_unit_test(compiled_rows_agree_with_the_evaluator)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
