/* join.c: the pass `join`: kernels that lie one behind the other, each row of which needs of the others' results only the same row, become
 * one. What they hand on then is never there as a whole: a few rows of it at a time stay in the cache, on the stack (the step `join` of
 * ir/schedule). Attention is the case in mind: its scores, their softmax, and the product with the values; and the same backward.
 *
 * Rows are the turns of the outermost loops. A group of kernels has rows in common where what one stores for another begins, in both, with
 * dimensions that are those loops themselves, the products of their extents alike. The loops are cut at all those products, and the last
 * ones into blocks of rows, so that all kernels begin with the same loops. Groups are made where what is handed on is more than caches
 * hold, and where each CPU has a schedule for them. An outermost loop over as many images as a step brings may stand around the rows, the
 * same around those of all kernels: what is said of rows is of one image then. */
#include <stdlib.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/kernel_clone.h"
#include "compiler/edit/line_up_node.h"
#include "compiler/edit/part_walk.h"
#include "compiler/edit/value_users.h"
#include "compiler/pass/pass.h"
#include "compiler/schedule/choose.h"
#include "ir/schedule/unfold.h"

#define HANDED_ON 16 /* times the second cache: less stays in the last one by itself (half of 32 MB on a Zen 5) */
#define MEMBERS_MAX 8
#define BUFFERS_MAX 20
#define FACTORS_MAX 8
#define ROWS_MAX (INT64_C(1) << 30) /* more are a mistake */
#define TURNS_MIN 4                 /* fewer are too few tasks */
#define IMAGES 4                    /* of a step that does not say how many */
#define ROWS_MIN 16                 /* of a turn: fewer do not pay for reading the second factors of products again */

struct group {
  flow_id members[MEMBERS_MAX]; /* in order */
  int count;
  int64_t rows;
};
struct joiner {
  struct build *build;
  struct flow *flow;
  struct value_users *users; /* by value */
  bool *is_followed;         /* by node: another one runs after it, whatever they hand on */
};

/* ---- rows of a kernel ---- */

struct rows_seen {
  const struct kernel *k;
  uint32_t buffer;
  const struct stmt *loops[LIMIT_RANK];
  int64_t extents[LIMIT_RANK];
  int count; /* dimensions, from the first on, that are the loops themselves wherever the buffer is used */
};
static void see_element(struct rows_seen *r, const expr_id *index) {
  const struct kernel_buffer *b = &r->k->buffers.items[r->buffer];
  int d = 0;
  while (d < r->count && d < b->rank && b->dims[d] == r->extents[d] && expr_is_local(r->k, index[d], r->loops[d]->local))
    d++;
  r->count = d;
}
static void see_stores(struct rows_seen *r, const struct stmt *s) {
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE && s->buffer == r->buffer)
      see_element(r, s->index);
    see_stores(r, s->body);
    see_stores(r, s->otherwise);
  }
}
static struct rows_seen rows_of(const struct kernel *k, uint32_t buffer) {
  struct rows_seen r = {.k = k, .buffer = buffer};
  r.count = kernel_outer_loops(k, r.loops, r.extents);
  see_stores(&r, k->body);
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *x = expr_get(k, e);
    if (x->op == SCALAR_LOAD && x->imm == (int64_t)buffer)
      see_element(&r, &k->operands.items[x->first]);
  }
  return r;
}
/* Rows of an image that a loop of this extent multiplies. */
static int64_t rows_by(int64_t extent) { return DIM_IS_SIZE(extent) ? 1 : extent; }
/* Whether so many rows are whole loops. */
static bool has_rows(const struct rows_seen *r, int64_t rows) {
  int64_t product = 1;
  for (int i = 0; i < r->count && product < rows; i++)
    if (__builtin_mul_overflow(product, rows_by(r->extents[i]), &product))
      return false;
  return product == rows;
}
/* The most rows that both have; 0: none. */
static int64_t common_rows(const struct rows_seen *a, const struct rows_seen *b) {
  int64_t product = 1, most = 0;
  for (int i = 0; i < a->count && !__builtin_mul_overflow(product, rows_by(a->extents[i]), &product) && product <= ROWS_MAX; i++)
    most = product > 1 && has_rows(b, product) ? product : most;
  return most;
}

/* ---- which kernels ---- */

static uint32_t buffer_with(const struct flow_node *n, value_id v, enum buffer_mode mode) {
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++)
    if (n->args[i].value == v && n->kernel->buffers.items[i].mode == mode)
      return i;
  return UINT32_MAX;
}
static bool is_number(enum dtype dtype) {
  return dtype != DTYPE_STRING && dtype != DTYPE_RESOURCE && dtype != DTYPE_VARIANT && !dtype_is_complex(dtype);
}
static bool is_plain(const struct stmt *s) {
  for (; s; s = s->next)
    if (s->kind == STMT_CHECK || s->kind == STMT_WHILE || !is_plain(s->body) || !is_plain(s->otherwise))
      return false;
  return true;
}
/* Whether a kernel has no size, or one that says how often its outermost loop turns, and nothing else. */
static bool is_of_images(const struct kernel *k) {
  const struct stmt *loops[LIMIT_RANK];
  int64_t extents[LIMIT_RANK];
  if (k->size_count == 0)
    return true;
  if (k->size_count > 1 || kernel_outer_loops(k, loops, extents) < 1 || extents[0] != DIM_OF_SIZE(0))
    return false;
  for (expr_id e = 1; e < k->exprs.count; e++)
    for (int i = 0; i < expr_get(k, e)->count; i++)
      if (expr_get(k, expr_operand(k, e, i))->op == SCALAR_SIZE)
        return false;
  for (uint32_t b = 0; b < k->buffers.count; b++)
    for (int d = 1; d < k->buffers.items[b].rank; d++)
      if (DIM_IS_SIZE(k->buffers.items[b].dims[d]))
        return false;
  return true;
}
/* Whether both are of one image, or of as many. */
static bool same_images(const struct joiner *j, const struct flow_node *a, const struct flow_node *b) {
  uint32_t count = a->kernel->size_count;
  return count == b->kernel->size_count && (!count || dim_equal(j->flow->dims, a->sizes[0], b->sizes[0]) == 1);
}
static bool may_join(const struct joiner *j, flow_id id) {
  const struct flow_node *n = j->flow->nodes.items[id];
  if (!n || n->op != FLOW_KERNEL || n->stateful || n->is_target || !n->kernel->body || n->kernel->body->next || !is_of_images(n->kernel) ||
      !is_plain(n->kernel->body) || j->is_followed[id])
    return false;
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++) {
    const struct kernel_buffer *b = &n->kernel->buffers.items[i];
    if (!n->args[i].value || n->args[i].var || (b->mode != BUFFER_IN && b->mode != BUFFER_OUT) || !is_number(b->dtype))
      return false;
  }
  return true;
}
static bool is_member(const struct group *g, flow_id id) {
  for (int i = 0; i < g->count; i++)
    if (g->members[i] == id)
      return true;
  return false;
}
/* Nobody else takes what the group makes before it is there: all is made where the last one stands. */
static bool is_taken_before(const struct joiner *j, const struct group *g, flow_id last) {
  for (int i = 0; i < g->count; i++) {
    const struct flow_node *n = j->flow->nodes.items[g->members[i]];
    for (uint32_t o = 0; o < n->outputs.count; o++) {
      const struct value_users *u = &j->users[n->outputs.items[o]];
      for (uint32_t t = 0; t < u->nodes.count; t++)
        if (u->nodes.items[t] < last && !is_member(g, u->nodes.items[t]))
          return true;
    }
  }
  return false;
}
/* Rows that the node has in common with all members of which it takes something, as many as the group has; 0: they have not. */
static int64_t rows_with(const struct joiner *j, const struct group *g, flow_id id) {
  const struct flow_node *n = j->flow->nodes.items[id];
  int64_t rows = g->rows;
  for (uint32_t b = 0; b < n->kernel->buffers.count; b++) {
    value_id v = n->args[b].value;
    flow_id from = j->flow->values.items[v].producer;
    if (n->kernel->buffers.items[b].mode != BUFFER_IN || !is_member(g, from))
      continue;
    const struct flow_node *p = j->flow->nodes.items[from];
    struct rows_seen stored = rows_of(p->kernel, buffer_with(p, v, BUFFER_OUT)), loaded = rows_of(n->kernel, b);
    if (!rows)
      rows = common_rows(&stored, &loaded);
    if (!rows || !has_rows(&stored, rows) || !has_rows(&loaded, rows))
      return 0;
  }
  return rows;
}
static bool join_group(const struct joiner *j, struct group *g, flow_id id) {
  const struct flow_node *n = j->flow->nodes.items[id], *first = j->flow->nodes.items[g->members[0]];
  if (g->count == MEMBERS_MAX || n->task != first->task || !same_images(j, n, first) || !nodes_same_guards(n, first) ||
      is_taken_before(j, g, id))
    return false;
  int64_t rows = rows_with(j, g, id);
  if (!rows)
    return false;
  g->rows = rows;
  g->members[g->count++] = id;
  return true;
}

/* ---- how many rows a turn has ---- */

/* Whether a member takes the value, and whether anybody else does. */
static bool is_handed_on(const struct joiner *j, const struct group *g, value_id v, bool *leaves) {
  const struct value_users *u = &j->users[v];
  bool is_taken = false;
  *leaves = false;
  for (uint32_t i = 0; i < u->nodes.count; i++) {
    bool inside = is_member(g, u->nodes.items[i]);
    is_taken = is_taken || inside;
    *leaves = *leaves || !inside;
  }
  return is_taken;
}
/* Of one image. */
static int64_t bytes_handed_on(const struct joiner *j, const struct group *g) {
  int64_t sum = 0;
  bool leaves, open = false; /* sizes count as 1 */
  for (int i = 0; i < g->count; i++) {
    const struct flow_node *n = j->flow->nodes.items[g->members[i]];
    for (uint32_t o = 0; o < n->outputs.count; o++)
      sum += is_handed_on(j, g, n->outputs.items[o], &leaves) ? flow_value_bytes(j->flow, n->outputs.items[o], &open) : 0;
  }
  return sum;
}
static int64_t least_l2(const struct joiner *j) {
  int64_t least = INT64_MAX;
  for (uint32_t i = 0; i < j->build->cpus.count; i++) {
    int64_t bytes = cpu_machine(&j->build->cpus, i)->bytes[LEVEL_L2];
    least = bytes < least ? bytes : least;
  }
  return least;
}

static int64_t images_of(const struct joiner *j, const struct group *g) {
  return j->flow->nodes.items[g->members[0]]->kernel->size_count ? IMAGES : 1;
}

/* The extents of the loops with which all members begin, the last being that of the rows of a turn. */
struct factors {
  int64_t of[FACTORS_MAX];
  int count;
};
static int by_size(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}
/* Products of the loops' extents at which some member has a loop's end, ascending, each once; gives how many. */
static int find_ends(const struct joiner *j, const struct group *g, int64_t *ends) {
  int count = 0;
  for (int i = 0; i < g->count; i++) {
    const struct stmt *loops[LIMIT_RANK];
    int64_t extents[LIMIT_RANK], product = 1;
    kernel_outer_loops(j->flow->nodes.items[g->members[i]]->kernel, loops, extents);
    for (int d = 0; product < g->rows; d++) {
      product *= rows_by(extents[d]);
      bool known = false;
      for (int e = 0; e < count; e++)
        known = known || ends[e] == product;
      if (!known && product > 1)
        ends[count++] = product;
    }
  }
  qsort(ends, (size_t)count, sizeof *ends, by_size);
  return count;
}
static bool find_factors(const struct joiner *j, const struct group *g, int64_t bytes, struct factors *out) {
  int64_t ends[MEMBERS_MAX * LIMIT_RANK], before = 1, most = bytes * g->rows / bytes_handed_on(j, g);
  int count = find_ends(j, g, ends);
  out->count = 0;
  if (j->flow->nodes.items[g->members[0]]->kernel->size_count)
    out->of[out->count++] = DIM_OF_SIZE(0);
  for (int i = 0; i < count; before = ends[i++]) {
    if (ends[i] % before || out->count + 2 > FACTORS_MAX)
      return false;
    out->of[out->count++] = ends[i] / before;
  }
  int64_t last = out->of[out->count - 1], rows = last < most ? last : most;
  while (rows > 1 && last % rows)
    rows--;
  if (rows < ROWS_MIN || g->rows / rows < TURNS_MIN)
    return false;
  if (rows < last) {
    out->of[out->count - 1] = last / rows;
    out->of[out->count++] = rows;
  }
  return out->count > 1;
}

/* ---- building ---- */

static bool has_factors(const struct kernel *k, uint32_t buffer, const struct factors *f) {
  struct rows_seen r = rows_of(k, buffer);
  for (int i = 0; i < f->count; i++)
    if (i >= r.count || r.extents[i] != f->of[i])
      return false;
  return true;
}
/* A copy of the member's kernel that begins with the factors, as does all that is handed on; NULL: there is none. */
static struct kernel *member_kernel(const struct joiner *j, const struct group *g, const struct flow_node *n, const struct factors *f) {
  struct kernel *made = kernel_cut_loops(n->kernel, f->of, f->count, &j->build->arena);
  bool leaves;
  for (uint32_t b = 0; made && b < made->buffers.count; b++) {
    value_id v = n->args[b].value;
    if (is_member(g, j->flow->values.items[v].producer) && is_handed_on(j, g, v, &leaves) && !has_factors(made, b, f))
      return NULL;
  }
  return made;
}
/* What only members take is scratch. */
static void hide_values(const struct joiner *j, const struct group *g, struct clone *made) {
  bool leaves;
  for (uint32_t i = 0; i < made->args.count; i++) {
    value_id v = made->args.items[i].value;
    struct kernel_buffer *b = &made->kernel->buffers.items[i];
    if (b->mode != BUFFER_OUT || !is_handed_on(j, g, v, &leaves) || leaves)
      continue;
    b->mode = BUFFER_SCRATCH;
    made->args.items[i] = (struct flow_arg){0};
  }
}
static bool append_members(struct joiner *j, const struct group *g, const struct factors *f, struct clone *made) {
  for (int i = 0; i < g->count; i++) {
    struct flow_node n = *j->flow->nodes.items[g->members[i]];
    node_line_up(j->flow, &n);
    n.kernel = member_kernel(j, g, &n, f);
    if (!n.kernel || !clone_append(made, &n))
      return false;
  }
  return made->kernel->buffers.count <= BUFFERS_MAX;
}
static bool all_join(const struct joiner *j, const struct kernel *k) {
  for (uint32_t i = 0; i < j->build->cpus.count; i++)
    if (!schedule_shared_loops(k, cpu_machine(&j->build->cpus, i), &j->build->arena))
      return false;
  return true;
}
static const char *joined_name(const struct joiner *j, const struct group *g) {
  const char *name = j->flow->nodes.items[g->members[0]]->kernel->name;
  for (int i = 1; i < g->count; i++)
    name = arena_printf(&j->build->arena, "%s_%s", name, j->flow->nodes.items[g->members[i]]->kernel->name);
  return name;
}
/* The last member becomes all of them. */
static void replace_members(struct joiner *j, const struct group *g, const struct clone *made) {
  flow_id last = g->members[g->count - 1];
  struct flow_node *to = j->flow->nodes.items[last];
  for (int i = 0; i < g->count - 1; i++) {
    const struct flow_node *n = j->flow->nodes.items[g->members[i]];
    for (uint32_t c = 0; c < n->controls.count; c++)
      node_follow(to, n->controls.items[c]);
    j->flow->nodes.items[g->members[i]] = NULL;
  }
  clone_place(made, j->flow, last);
}
static void build_group(struct joiner *j, const struct group *g) {
  struct factors f;
  int64_t l2 = least_l2(j);
  if (g->count < 2 || images_of(j, g) * bytes_handed_on(j, g) <= HANDED_ON * l2 || !find_factors(j, g, l2, &f))
    return;
  struct clone made;
  clone_begin(&made, j->flow, joined_name(j, g));
  uint32_t nodes = j->flow->nodes.count, values = j->flow->values.count;
  bool done = append_members(j, g, &f, &made);
  if (done)
    hide_values(j, g, &made);
  made.kernel->size_count = made.sizes.count;
  if (done && all_join(j, made.kernel)) {
    replace_members(j, g, &made);
    return;
  }
  flow_take_back(j->flow, nodes, values); /* copies of factors */
  clone_drop(&made);
}

/* ---- the walk ---- */

/* The group of one of the nodes whose values the node takes; a new one of that node alone where it has none. */
static void find_group(struct joiner *j, struct group *groups, uint32_t *of, uint32_t *count, flow_id id) {
  const struct flow_node *n = j->flow->nodes.items[id];
  for (uint32_t i = 0; i < n->inputs.count && !of[id]; i++) {
    flow_id from = j->flow->values.items[n->inputs.items[i]].producer;
    struct group alone = {.members = {from}, .count = 1}, *g = of[from] ? &groups[of[from]] : &alone;
    if (!may_join(j, from) || !join_group(j, g, id))
      continue;
    if (!of[from]) {
      groups[++*count] = alone;
      of[from] = *count;
    }
    of[id] = of[from];
  }
}
static status join_flow(struct build *b, const struct part_ref *part, struct flow *f, void *self) {
  (void)part, (void)self;
  struct joiner j = {.build = b, .flow = f, .users = value_users_find(f), .is_followed = flow_followed(f)};
  uint32_t nodes = f->nodes.count, values = f->values.count, count = 0, *of = calloc(nodes + 1, sizeof *of);
  struct group *groups = calloc(nodes + 1, sizeof *groups);
  for (flow_id id = 1; id < nodes; id++)
    if (may_join(&j, id))
      find_group(&j, groups, of, &count, id);
  for (uint32_t i = 1; i <= count; i++)
    build_group(&j, &groups[i]);
  if (f->nodes.count > nodes)
    flow_sort(f);
  value_users_free(j.users, values);
  free(j.is_followed);
  free(groups);
  free(of);
  return OK;
}

status pass_join(struct build *b) { return b->options.math == MATH_STRICT ? OK : part_each_flow(b, join_flow, NULL); }
