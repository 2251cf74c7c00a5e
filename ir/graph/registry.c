/* registry.c: the table of signatures, parsed from text on first use, and the check of a graph's nodes against it. */
#include "ir/graph/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "ir/graph/function.h"

extern const char tf_ops_text[];

static struct {
  struct arena arena;
  VEC(struct op_def) ops;
  struct map names;
} registry;

/* ---- parsing ---- */

/* The next field up to `end`, without it; *p moves behind it. */
static char *take(const char **p, const char *end) {
  size_t n = strcspn(*p, end);
  char *s = arena_strndup(&registry.arena, *p, n);
  *p += n;
  return s;
}

static char *unquote(const char *p, size_t n, uint64_t *size) {
  char *s = arena_alloc(&registry.arena, n + 1);
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    unsigned byte;
    if (p[i] == '%' && i + 2 < n + 1 && sscanf(p + i + 1, "%2x", &byte) == 1) {
      s[k++] = (char)byte;
      i += 2;
    } else {
      s[k++] = p[i];
    }
  }
  *size = k;
  return s;
}

static void parse_shape(const char *text, struct attr_shape *out) {
  if (*text == '?') {
    out->unknown_rank = true;
    return;
  }
  if (strcmp(text, "-") == 0)
    return;
  VEC(int64_t) dims = {0};
  for (const char *p = text; *p; p++) {
    char *end;
    vec_push(&dims, strtoll(p, &end, 10));
    p = end;
    if (!*p)
      break;
  }
  out->rank = (int)dims.count;
  out->dims = arena_copy(&registry.arena, dims.items, sizeof(int64_t) * dims.count);
  vec_free(&dims);
}

static struct attr_value parse_scalar(const char *type, const char *text) {
  struct attr_value v = {0};
  if (strcmp(type, "string") == 0) {
    v.kind = ATTR_STRING;
    v.s.data = unquote(text, strlen(text), &v.s.size);
  } else if (strcmp(type, "float") == 0) {
    v.kind = ATTR_FLOAT;
    v.f = strtod(text, NULL);
  } else if (strcmp(type, "shape") == 0) {
    v.kind = ATTR_SHAPE;
    parse_shape(text, &v.shape);
  } else {
    v.kind = strcmp(type, "bool") == 0 ? ATTR_BOOL : strcmp(type, "type") == 0 ? ATTR_TYPE : ATTR_INT;
    v.i = strtoll(text, NULL, 10);
  }
  return v;
}

static struct attr_value parse_default(const char *type, char *text) {
  if (strncmp(type, "list(", 5) != 0)
    return parse_scalar(type, text);
  const char *inner = type + 5;
  char element[16] = {0};
  snprintf(element, sizeof element, "%.*s", (int)strcspn(inner, ")"), inner);
  VEC(struct attr_value) items = {0};
  text++; /* [ */
  text[strlen(text) - 1] = 0;
  for (char *save, *item = strtok_r(text, ";", &save); item; item = strtok_r(NULL, ";", &save))
    vec_push(&items, parse_scalar(element, item));
  struct attr_value v = {.kind = ATTR_LIST};
  v.list.count = items.count;
  v.list.items = arena_copy(&registry.arena, items.items, sizeof *items.items * items.count);
  vec_free(&items);
  return v;
}

static void parse_allowed(const char *type, char *text, struct op_attr *out) {
  VEC(const char *) words = {0};
  for (char *word; (word = strsep(&text, ","));) /* a word may be empty: a string that is */
    vec_push(&words, word);
  if (strcmp(type, "type") == 0 || strcmp(type, "list(type)") == 0) {
    uint8_t *types = arena_alloc(&registry.arena, words.count + 1);
    for (uint32_t i = 0; i < words.count; i++)
      types[i] = (uint8_t)atoi(words.items[i]);
    out->allowed = types;
  } else {
    const char **strings = ARENA_ARRAY(&registry.arena, const char *, words.count + 1);
    uint64_t size;
    for (uint32_t i = 0; i < words.count; i++)
      strings[i] = unquote(words.items[i], strlen(words.items[i]), &size);
    out->allowed_strings = strings;
  }
  vec_free(&words);
}

static struct op_attr parse_attr(const char **p) {
  struct op_attr a = {0};
  a.name = take(p, ":");
  ++*p;
  a.type = take(p, "=|^\t\n");
  if (**p == '=') {
    ++*p;
    a.has_default = true;
    a.value = parse_default(a.type, take(p, "|^\t\n"));
  }
  if (**p == '|') {
    ++*p;
    parse_allowed(a.type, take(p, "^\t\n"), &a);
  }
  if (**p == '^') {
    ++*p;
    a.has_minimum = true;
    a.minimum = strtoll(take(p, "\t\n"), NULL, 10);
  }
  return a;
}

/* 0,2+ */
static rank_set parse_ranks(const char *text) {
  rank_set ranks = 0;
  while (*text) {
    int rank = (int)strtol(text, (char **)&text, 10);
    ranks |= *text == '+' ? ranks_from(rank) : ranks_of(rank);
    text += *text != 0;
  }
  return ranks;
}

static struct op_arg parse_arg(const char **p) {
  struct op_arg a = {.ranks = RANKS_ALL, .rank_of = -1};
  a.name = take(p, ":");
  ++*p;
  char *spec = take(p, "/\t\n");
  if (**p == '/') {
    ++*p;
    const char *ranks = take(p, "\t\n");
    if (*ranks == '=')
      a.rank_of = atoi(ranks + 1);
    else
      a.ranks = parse_ranks(ranks);
  }
  if (*spec == '&')
    a.is_ref = true, spec++;
  char *star = strchr(spec, '*');
  if (star) {
    *star = 0;
    a.number_attr = spec;
    spec = star + 1;
  }
  if (*spec == '@')
    a.list_attr = spec + 1;
  else if (*spec >= '0' && *spec <= '9')
    a.dtype = (uint8_t)atoi(spec);
  else
    a.type_attr = spec;
  return a;
}

static const char *parse_op(const char *p, struct op_def *op) {
  VEC(struct op_arg) inputs = {0}, outputs = {0};
  VEC(struct op_attr) attrs = {0};
  char *name = take(&p, "\t\n");
  size_t n = strlen(name);
  op->is_stateful = name[n - 1] == '!';
  if (op->is_stateful)
    name[n - 1] = 0;
  op->name = name;
  while (*p == '\t') {
    char kind = p[1];
    p += 2;
    if (kind == '>')
      vec_push(&inputs, parse_arg(&p));
    else if (kind == '<')
      vec_push(&outputs, parse_arg(&p));
    else
      vec_push(&attrs, parse_attr(&p));
  }
  op->inputs = arena_copy(&registry.arena, inputs.items, sizeof *inputs.items * inputs.count);
  op->outputs = arena_copy(&registry.arena, outputs.items, sizeof *outputs.items * outputs.count);
  op->attrs = arena_copy(&registry.arena, attrs.items, sizeof *attrs.items * attrs.count);
  op->input_count = (uint16_t)inputs.count;
  op->output_count = (uint16_t)outputs.count;
  op->attr_count = (uint16_t)attrs.count;
  vec_free(&inputs);
  vec_free(&outputs);
  vec_free(&attrs);
  return *p == '\n' ? p + 1 : p;
}

static void registry_load(void) {
  arena_init(&registry.arena);
  for (const char *p = tf_ops_text; *p;) {
    struct op_def op = {0};
    p = parse_op(p, &op);
    map_insert(&registry.names, op.name, registry.ops.count);
    vec_push(&registry.ops, op);
  }
}
static pthread_once_t once = PTHREAD_ONCE_INIT;

const struct op_def *registry_find(const char *op) {
  pthread_once(&once, registry_load);
  uint32_t at;
  return map_find(&registry.names, op, &at) ? &registry.ops.items[at] : NULL;
}
uint32_t registry_count(void) {
  pthread_once(&once, registry_load);
  return registry.ops.count;
}
const struct op_def *registry_at(uint32_t index) { return &registry.ops.items[index]; }

/* ---- attributes ---- */

static const struct op_attr *attr_of_def(const struct op_def *def, const char *name) {
  for (uint32_t i = 0; def && i < def->attr_count; i++)
    if (strcmp(def->attrs[i].name, name) == 0)
      return &def->attrs[i];
  return NULL;
}

const struct attr_value *node_attr(const struct node *node, const char *name) {
  const struct attr_value *v = attr_find(node->attrs, node->attr_count, name);
  if (v)
    return v;
  const struct op_attr *a = attr_of_def(node->def, name);
  return a && a->has_default ? &a->value : NULL;
}
int64_t node_attr_int(const struct node *node, const char *name, int64_t otherwise) {
  const struct attr_value *v = node_attr(node, name);
  return v && (v->kind == ATTR_INT || v->kind == ATTR_BOOL || v->kind == ATTR_TYPE) ? v->i : otherwise;
}
double node_attr_float(const struct node *node, const char *name, double otherwise) {
  const struct attr_value *v = node_attr(node, name);
  return v && v->kind == ATTR_FLOAT ? v->f : otherwise;
}
const char *node_attr_string(const struct node *node, const char *name, const char *otherwise) {
  const struct attr_value *v = node_attr(node, name);
  return v && v->kind == ATTR_STRING ? v->s.data : otherwise;
}

static const struct attr_shape *known_shape(const struct attr_value *v) {
  return v && v->kind == ATTR_SHAPE && !v->shape.unknown_rank ? &v->shape : NULL;
}
const struct attr_shape *node_attr_shape(const struct node *node, const char *name) { return known_shape(node_attr(node, name)); }
const struct attr_shape *node_output_shape(const struct node *node, uint32_t port) {
  const struct attr_value *all = attr_find(node->attrs, node->attr_count, "_output_shapes");
  return all && all->kind == ATTR_LIST && port < all->list.count ? known_shape(&all->list.items[port]) : NULL;
}

/* ---- checking nodes ---- */

static enum attr_kind kind_of_type(const char *type) {
  static const struct {
    const char *type;
    enum attr_kind kind;
  } kinds[] = {{"type", ATTR_TYPE},     {"int", ATTR_INT},     {"float", ATTR_FLOAT},   {"bool", ATTR_BOOL},
               {"string", ATTR_STRING}, {"shape", ATTR_SHAPE}, {"tensor", ATTR_TENSOR}, {"func", ATTR_FUNC}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strncmp(type, kinds[i].type, strlen(kinds[i].type)))
      return kinds[i].kind;
  return ATTR_NONE;
}

static bool is_dtype(int64_t number) { return number > 0 && number <= UINT8_MAX && dtype_is_valid(dtype_base((int)number)); }

/* Whoever reads an attribute relies on its kind. */
static status check_attr_kind(const struct node *n, const struct op_attr *a, const struct attr_value *v) {
  bool is_list = !strncmp(a->type, "list(", 5), good = is_list ? v->kind == ATTR_LIST : v->kind == kind_of_type(a->type);
  enum attr_kind item = is_list ? kind_of_type(a->type + 5) : ATTR_NONE;
  for (uint32_t i = 0; good && is_list && i < v->list.count; i++)
    good = v->list.items[i].kind == item;
  return good ? OK : fail(INVALID_ARGUMENT, "%s (%s): attribute '%s' must be %s", n->name, n->op, a->name, a->type);
}

static status check_attr_value(const struct node *n, const struct op_attr *a, const struct attr_value *v) {
  TRY(check_attr_kind(n, a, v));
  if (a->allowed && v->kind == ATTR_TYPE && (v->i < 1 || v->i > UINT8_MAX || !strchr((const char *)a->allowed, (int)v->i)))
    return fail(INVALID_ARGUMENT, "%s (%s): attribute '%s' may not be %s", n->name, n->op, a->name, dtype_name((enum dtype)v->i));
  if (a->allowed_strings && v->kind == ATTR_STRING) {
    const char *const *s = a->allowed_strings;
    while (*s && strcmp(*s, v->s.data) != 0)
      s++;
    if (!*s)
      return fail(INVALID_ARGUMENT, "%s (%s): attribute '%s' may not be \"%s\"", n->name, n->op, a->name, v->s.data);
  }
  int64_t count = v->kind == ATTR_LIST ? (int64_t)v->list.count : v->i;
  if (a->has_minimum && (v->kind == ATTR_INT || v->kind == ATTR_LIST) && count < a->minimum)
    return fail(INVALID_ARGUMENT, "%s (%s): attribute '%s' must be at least %lld, not %lld", n->name, n->op, a->name, (long long)a->minimum,
                (long long)count);
  return OK;
}

static status check_attrs(const struct node *n) {
  for (uint32_t i = 0; i < n->def->attr_count; i++) {
    const struct op_attr *a = &n->def->attrs[i];
    const struct attr_value *v = node_attr(n, a->name);
    if (!v && !a->has_default)
      return fail(INVALID_ARGUMENT, "%s (%s): attribute '%s' is missing", n->name, n->op, a->name);
    if (v)
      TRY(check_attr_value(n, a, v));
  }
  return OK;
}

/* TensorFlow's dtypes that tfc has not, by their numbers from DTYPE_COUNT on. */
static const char *const small_dtypes[] = {"float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz",
                                           "int4",        "uint4"};

static status refuse_dtype(const struct node *n, const char *attr, int64_t number) {
  int64_t small = (number > DTYPE_REF ? number - DTYPE_REF : number) - DTYPE_COUNT;
  if (small >= 0 && small < (int64_t)(sizeof small_dtypes / sizeof *small_dtypes))
    return fail(UNIMPLEMENTED, "%s (%s): attribute '%s' is %s, a dtype that is not there", n->name, n->op, attr, small_dtypes[small]);
  return fail(INVALID_ARGUMENT, "%s (%s): attribute '%s' is no dtype", n->name, n->op, attr);
}

static status push_arg_dtypes(const struct node *n, const struct op_arg *a, dtype_list *out) {
  int64_t count = a->number_attr ? node_attr_int(n, a->number_attr, 0) : 1;
  if (count < 0 || count > LIMIT_NODE_INPUTS)
    return fail(INVALID_ARGUMENT, "%s (%s): attribute '%s' is %lld", n->name, n->op, a->number_attr, (long long)count);
  if (a->list_attr) {
    const struct attr_value *v = node_attr(n, a->list_attr);
    for (uint32_t i = 0; v && v->kind == ATTR_LIST && i < v->list.count; i++) {
      if (v->list.items[i].kind != ATTR_TYPE || !is_dtype(v->list.items[i].i))
        return refuse_dtype(n, a->list_attr, v->list.items[i].kind == ATTR_TYPE ? v->list.items[i].i : 0);
      vec_push(out, (uint8_t)v->list.items[i].i);
    }
    return OK;
  }
  int64_t dtype = a->dtype || !a->type_attr ? a->dtype : node_attr_int(n, a->type_attr, 0);
  if (!is_dtype(dtype))
    return refuse_dtype(n, a->type_attr ? a->type_attr : a->name, dtype);
  for (int64_t i = 0; i < count; i++)
    vec_push(out, (uint8_t)(a->is_ref && dtype < DTYPE_REF ? dtype + DTYPE_REF : dtype));
  return OK;
}

status registry_arg_dtypes(const struct node *n, const struct op_arg *a, dtype_list *out) {
  TRY(push_arg_dtypes(n, a, out));
  return out->count <= LIMIT_NODE_INPUTS
         ? OK
         : fail(RESOURCE_EXHAUSTED, "%s (%s): has more than %d inputs or outputs", n->name, n->op, LIMIT_NODE_INPUTS);
}

status registry_unknown_op(const struct graph *g, const struct node *n) {
  struct nearest nearest;
  char text[1024];
  nearest_begin(&nearest, n->op);
  for (uint32_t i = 0; i < g->functions.count; i++)
    nearest_add(&nearest, g->functions.items[i].name);
  for (uint32_t i = 0; i < registry_count(); i++)
    nearest_add(&nearest, registry_at(i)->name);
  return fail(NOT_FOUND, "%s (%s): TensorFlow has no op '%s', and the graph no such function%s", n->name, n->op, n->op,
              nearest_text(&nearest, ", the nearest are: ", text, sizeof text));
}

static status expand_signature(struct graph *g, struct node *n, dtype_list *in, dtype_list *out) {
  n->def = registry_find(n->op);
  const struct function *f = n->def ? NULL : function_find(g, n->op);
  if (f) {
    struct node full = *n;
    function_attrs(f, n->attrs, n->attr_count, g->arena, &full.attrs, &full.attr_count);
    for (uint32_t i = 0; i < f->arg_count; i++)
      TRY(registry_arg_dtypes(&full, &f->args[i], in));
    for (uint32_t i = 0; i < f->ret_count; i++)
      TRY(registry_arg_dtypes(&full, &f->rets[i], out));
    return OK;
  }
  if (!n->def)
    return registry_unknown_op(g, n);
  TRY(check_attrs(n));
  for (uint32_t i = 0; i < n->def->input_count; i++)
    TRY(registry_arg_dtypes(n, &n->def->inputs[i], in));
  for (uint32_t i = 0; i < n->def->output_count; i++)
    TRY(registry_arg_dtypes(n, &n->def->outputs[i], out));
  return OK;
}

static status check_inputs(const struct graph *g, const struct node *n, uint32_t expected) {
  if (n->input_count != expected)
    return fail(INVALID_ARGUMENT, "%s (%s): has %u inputs, needs %u", n->name, n->op, n->input_count, expected);
  for (uint32_t i = 0; i < n->input_count; i++) {
    const struct node *from = &g->nodes.items[n->inputs[i].node];
    if (n->inputs[i].port >= from->output_count)
      return fail(INVALID_ARGUMENT, "%s (%s): input %u is '%s:%u', but '%s' (%s) has %u outputs", n->name, n->op, i, from->name,
                  n->inputs[i].port, from->name, from->op, from->output_count);
    int have = from->output_dtypes[n->inputs[i].port], want = n->input_dtypes[i];
    if (want > DTYPE_REF ? have != want : (int)dtype_base(have) != want)
      return fail(INVALID_ARGUMENT, "%s (%s): input %u must be %s%s, but '%s:%u' is %s%s", n->name, n->op, i, dtype_name(dtype_base(want)),
                  want > DTYPE_REF ? " (reference)" : "", from->name, n->inputs[i].port, dtype_name(dtype_base(have)),
                  have > DTYPE_REF ? " (reference)" : "");
  }
  return OK;
}

/* The dtypes of a node; *expected: how many inputs it must have. */
static status set_signature(struct graph *g, struct node *n, uint32_t *expected) {
  dtype_list in = {0}, out = {0};
  status s = expand_signature(g, n, &in, &out);
  *expected = in.count;
  n->input_dtypes = arena_copy(g->arena, in.items, in.count);
  n->output_dtypes = arena_copy(g->arena, out.items, out.count);
  n->output_count = out.count;
  vec_free(&in);
  vec_free(&out);
  return s;
}

status registry_check_node(struct graph *graph, struct node *node) {
  uint32_t expected = 0;
  TRY(set_signature(graph, node, &expected));
  return check_inputs(graph, node, expected);
}

status registry_check(struct graph *g) {
  uint32_t *expected = calloc(g->nodes.count + 1, sizeof *expected);
  status result = OK;
  for (uint32_t i = 0; i < g->nodes.count && result == OK; i++)
    result = set_signature(g, &g->nodes.items[i], &expected[i]);
  for (uint32_t i = 0; i < g->nodes.count && result == OK; i++)
    result = check_inputs(g, &g->nodes.items[i], expected[i]);
  free(expected);
  return result;
}
