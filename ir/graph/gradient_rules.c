/* gradient_rules.c: the rows of gradients.def, read as nodes: the statements of an op's row become a graph, whose dtypes and
 * numbers follow from the arguments as the registry says. */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph/gradient.h"
#include "ir/graph/registry.h"

/* What a row does: nodes (statements), nothing (NULL), or an error. */
struct rule {
  const char *op, *when, *inputs, *outputs, *statements;
  status code;
  const char *text;
};

static const struct rule rules[] = {
#define GRADIENT(op, when, inputs, outputs, statements) {op, when, inputs, outputs, statements, OK, NULL},
#define NO_GRADIENT(op) {op, "", "", "", NULL, OK, NULL},
#define REFUSES(op, when, code, text) {op, when, "", "", NULL, code, text},
#include "ir/gradients.def"
};
#define RULE_COUNT (sizeof rules / sizeof *rules)

typedef VEC(struct edge) edge_list;
struct name {
  const char *name;
  edge_list value;
};

/* A row being read: `p` is where. */
struct reader {
  const struct rule *rule;
  const struct node *of; /* the node whose gradient it is: op and attributes */
  struct graph *graph;
  const char *prefix;
  const char *p;
  VEC(struct name) names;
};

/* ---- words ---- */

static void skip(struct reader *r) { r->p += strspn(r->p, " "); }

static bool take_char(struct reader *r, char wanted) {
  skip(r);
  if (*r->p != wanted)
    return false;
  r->p++;
  return true;
}

static const char *take_word(struct reader *r) {
  skip(r);
  size_t n = 0;
  while (isalnum((unsigned char)r->p[n]) || r->p[n] == '_')
    n++;
  const char *word = arena_strndup(r->graph->arena, r->p, n);
  r->p += n;
  return word;
}

static status bad_row(struct reader *r, const char *what) { return fail(INTERNAL, "the rule of %s: %s at '%s'", r->rule->op, what, r->p); }

/* ---- names ---- */

static edge_list *name_value(struct reader *r, const char *name) {
  for (uint32_t i = 0; i < r->names.count; i++)
    if (strcmp(r->names.items[i].name, name) == 0)
      return &r->names.items[i].value;
  return NULL;
}

/* The place of a name's value; whoever pushes to it does so before the next name is made. */
static edge_list *add_name(struct reader *r, const char *name) {
  vec_push(&r->names, (struct name){.name = name});
  return &vec_last(&r->names).value;
}

static enum dtype dtype_of(const struct reader *r, struct edge e) {
  return dtype_base(r->graph->nodes.items[e.node].output_dtypes[e.port]);
}

/* ---- nodes ---- */

static status add_node(struct reader *r, struct node node, edge_list *out) {
  uint32_t at;
  TRY(function_add_node(r->graph, r->prefix, node, &at));
  for (uint32_t i = 0; i < r->graph->nodes.items[at].output_count; i++)
    vec_push(out, (struct edge){at, i});
  return OK;
}

static status add_constant(struct reader *r, enum dtype dtype, int rank, const void *element, edge_list *out) {
  struct constant *value = ARENA_NEW(r->graph->arena, struct constant);
  *value = (struct constant){
    .dtype = dtype, .rank = rank, .dims = {1}, .count = 1, .data = arena_copy(r->graph->arena, element, dtype_size(dtype))};
  const struct attr attrs[] = {attr_of_type("dtype", dtype), {.name = "value", .value = {.kind = ATTR_TENSOR, .tensor = value}}};
  return add_node(r, (struct node){.op = "Const", .attrs = attrs, .attr_count = 2}, out);
}

/* "0.5" of the node's dtype, "#1", "#[1]" */
static status read_number(struct reader *r, edge_list *out) {
  bool whole = take_char(r, '#'), vector = whole && take_char(r, '[');
  char *end;
  float value = strtof(r->p, &end);
  if (end == r->p)
    return bad_row(r, "no number");
  r->p = end;
  if (vector && !take_char(r, ']'))
    return bad_row(r, "no ]");
  int32_t integer = (int32_t)value;
  if (whole)
    return add_constant(r, DTYPE_INT32, vector, &integer, out);
  edge_list one = {0};
  TRY(add_constant(r, DTYPE_FLOAT, 0, &value, &one));
  const struct attr attrs[] = {attr_of_type("SrcT", DTYPE_FLOAT), attr_of_type("DstT", node_attr_int(r->of, "T", DTYPE_FLOAT))};
  status s = add_node(r, (struct node){.op = "Cast", .attrs = attrs, .attr_count = 2, .inputs = one.items, .input_count = 1}, out);
  vec_free(&one);
  return s;
}

/* ---- calls ---- */

#define CALL_ARGS 8
#define CALL_ATTRS 24
struct call {
  const char *op;
  bool each; /* one node for each element of the lists among the arguments */
  edge_list args[CALL_ARGS];
  uint32_t arg_count;
  struct attr attrs[CALL_ATTRS];
  uint32_t attr_count;
};

static void call_attr(struct call *c, const char *name, struct attr_value value) {
  for (uint32_t i = 0; i < c->attr_count; i++)
    if (strcmp(c->attrs[i].name, name) == 0)
      return; /* the first one says it */
  assert(c->attr_count < CALL_ATTRS);
  c->attrs[c->attr_count++] = (struct attr){.name = name, .value = value};
}

/* One argument of each list, and what follows from it for the attributes. */
static status add_call_node(struct reader *r, const struct call *call, uint32_t element, edge_list *out) {
  const struct op_def *def = registry_find(call->op);
  struct call c = *call;
  edge_list inputs = {0};
  if (!def || def->input_count != c.arg_count)
    return bad_row(r, def ? "wrong number of arguments" : "no such op");
  for (uint32_t i = 0; i < c.arg_count; i++)
    if (!op_arg_is_list(&def->inputs[i]) && c.args[i].count != 1 && !c.each)
      return bad_row(r, "a list as one argument");
  for (uint32_t i = 0; i < c.arg_count; i++) {
    const struct op_arg *arg = &def->inputs[i];
    const edge_list *list = &c.args[i];
    for (uint32_t k = 0; k < list->count; k++)
      if (!c.each || list->count == 1 || k == element)
        vec_push(&inputs, list->items[k]);
    if (arg->type_attr)
      call_attr(&c, arg->type_attr,
                (struct attr_value){.kind = ATTR_TYPE, .i = list->count ? dtype_of(r, list->items[0]) : node_attr_int(r->of, "T", 0)});
    if (arg->number_attr)
      call_attr(&c, arg->number_attr, (struct attr_value){.kind = ATTR_INT, .i = list->count});
  }
  struct node node = {.op = def->name, .attrs = c.attrs, .attr_count = c.attr_count, .inputs = inputs.items, .input_count = inputs.count};
  status s = add_node(r, node, out);
  vec_free(&inputs);
  return s;
}

static status read_expression(struct reader *r, edge_list *out);

/* "strides" is the node's own, "num=$N" the node's N, "keep_dims=true". */
static status read_attr(struct reader *r, struct call *c) {
  const char *name = take_word(r);
  bool given = take_char(r, '='), own = !given || take_char(r, '$');
  const char *word = given ? take_word(r) : name;
  if (!*name || !*word || (!own && strcmp(word, "true") != 0))
    return bad_row(r, "no attribute");
  if (!own) {
    call_attr(c, name, (struct attr_value){.kind = ATTR_BOOL, .i = true});
    return OK;
  }
  const struct attr_value *value = node_attr(r->of, word);
  if (!value)
    return fail(INVALID_ARGUMENT, "%s: attribute '%s' is missing", r->of->op, word);
  call_attr(c, name, *value);
  return OK;
}

static status read_arguments(struct reader *r, struct call *c) {
  while (!take_char(r, ')')) {
    if (take_char(r, ';')) {
      for (skip(r); *r->p && *r->p != ')'; skip(r))
        TRY(read_attr(r, c));
      continue;
    }
    if (c->arg_count && !take_char(r, ','))
      return bad_row(r, "no )");
    if (c->arg_count == CALL_ARGS)
      return bad_row(r, "too many arguments");
    TRY(read_expression(r, &c->args[c->arg_count++]));
  }
  return OK;
}

static status make_call(struct reader *r, struct call *c, edge_list *out) {
  uint32_t count = 1;
  if (strcmp(c->op, "join") == 0) {
    for (uint32_t i = 0; i < c->arg_count; i++)
      for (uint32_t k = 0; k < c->args[i].count; k++)
        vec_push(out, c->args[i].items[k]);
    return OK;
  }
  for (uint32_t i = 0; i < c->arg_count && c->each; i++)
    count = c->args[i].count > count ? c->args[i].count : count;
  for (uint32_t i = 0; i < count; i++)
    TRY(add_call_node(r, c, i, out));
  return OK;
}

static status read_expression(struct reader *r, edge_list *out) {
  skip(r);
  if (*r->p == '#' || *r->p == '-' || isdigit((unsigned char)*r->p))
    return read_number(r, out);
  struct call c = {.op = take_word(r)};
  c.each = take_char(r, '*');
  if (!take_char(r, '(')) {
    const edge_list *value = name_value(r, c.op);
    if (!value)
      return bad_row(r, "no such name");
    for (uint32_t i = 0; i < value->count; i++)
      vec_push(out, value->items[i]);
    return OK;
  }
  status s = read_arguments(r, &c);
  if (s == OK)
    s = make_call(r, &c, out);
  for (uint32_t i = 0; i < c.arg_count; i++)
    vec_free(&c.args[i]);
  return s;
}

/* ---- statements ---- */

/* "a = ...", "a, b = ...": the last name has all that is left. */
static status read_statement(struct reader *r) {
  const char *names[4];
  uint32_t count = 0, at = 0;
  do
    names[count++] = take_word(r);
  while (count < 4 && take_char(r, ','));
  edge_list value = {0};
  status s = take_char(r, '=') ? read_expression(r, &value) : bad_row(r, "no =");
  for (uint32_t i = 0; i < count && s == OK; i++) {
    edge_list *named = add_name(r, names[i]);
    for (uint32_t left = i + 1 < count ? 1 : value.count; left && at < value.count; left--)
      vec_push(named, value.items[at++]);
  }
  vec_free(&value);
  return s;
}

/* The arguments of the instance that a row's list of names stands for: of the op's inputs or outputs. */
static status add_arguments(struct reader *r, const char *texts, const struct op_arg *args, uint32_t count, bool are_inputs) {
  r->p = texts;
  for (uint32_t i = 0; i < count; i++) {
    const char *name = take_word(r);
    bool declared = take_char(r, ':');
    const char *word = declared ? take_word(r) : "";
    enum dtype fixed = DTYPE_INVALID;
    if (declared && !dtype_from_name(word, &fixed))
      fixed = (enum dtype)node_attr_int(r->of, word, 0);
    dtype_list dtypes = {0};
    status s = registry_arg_dtypes(r->of, &args[i], &dtypes);
    edge_list *value = add_name(r, name);
    for (uint32_t k = 0; k < dtypes.count && s == OK; k++) {
      uint32_t at = r->graph->nodes.count;
      enum dtype dtype = declared ? fixed : dtype_base(dtypes.items[k]);
      struct node arg =
        function_arg_node(arena_printf(r->graph->arena, "%s/%s_%u", r->prefix, are_inputs ? "x" : "dy", at), dtype, at, r->graph->arena);
      s = function_add_node(r->graph, r->prefix, arg, &at);
      vec_push(value, (struct edge){at, 0});
    }
    vec_free(&dtypes);
    TRY(s);
  }
  skip(r);
  return *r->p ? bad_row(r, "more names than the op has arguments") : OK;
}

/* What the statements have set as the gradient of an input, or zeros like it. */
static status input_gradient(struct reader *r, const struct name *input, edge_list *out) {
  const edge_list *set = name_value(r, arena_printf(r->graph->arena, "d%s", input->name));
  for (uint32_t i = 0; set && i < set->count; i++)
    vec_push(out, set->items[i]);
  struct call zeros = {.op = "ZerosLike", .arg_count = 1};
  for (uint32_t i = 0; !set && i < input->value.count; i++) {
    zeros.args[0] = (edge_list){.items = &input->value.items[i], .count = 1};
    TRY(add_call_node(r, &zeros, 0, out));
  }
  return set && set->count != input->value.count ? bad_row(r, "a gradient of another length than its input") : OK;
}

static status read_row(struct reader *r, struct instance *out) {
  const struct op_def *def = r->of->def;
  edge_list rets = {0};
  status s = add_arguments(r, r->rule->inputs, def->inputs, def->input_count, true);
  if (s == OK)
    s = add_arguments(r, r->rule->outputs, def->outputs, def->output_count, false);
  out->arg_count = r->graph->nodes.count;
  r->p = r->rule->statements;
  for (bool more = s == OK; more; more = s == OK && take_char(r, ';'))
    s = read_statement(r);
  if (s == OK && *r->p)
    s = bad_row(r, "no end");
  for (uint32_t i = 0; i < def->input_count && s == OK; i++)
    s = input_gradient(r, &r->names.items[i], &rets);
  out->ret_count = rets.count;
  out->rets = arena_copy(r->graph->arena, rets.items, rets.count * sizeof *rets.items);
  vec_free(&rets);
  for (uint32_t i = 0; i < r->names.count; i++)
    vec_free(&r->names.items[i].value);
  vec_free(&r->names);
  return s;
}

/* ---- rows ---- */

/* One word of `when`: "a", "!a", "T=complex", "Tidx=int64". */
static bool word_holds(const struct node *n, const char *word, size_t length) {
  char name[64] = {0}, *value;
  memcpy(name, word + (*word == '!'), length - (*word == '!'));
  value = strchr(name, '=');
  if (!value)
    return node_attr_int(n, name, 0) == (*word != '!');
  *value++ = 0;
  enum dtype have = dtype_base((int)node_attr_int(n, name, 0)), want;
  if (strcmp(value, "complex") == 0)
    return have == DTYPE_COMPLEX64 || have == DTYPE_COMPLEX128;
  return dtype_from_name(value, &want) && have == want;
}

static bool row_holds(const struct rule *rule, const struct node *n) {
  for (const char *p = rule->when; *p;) {
    size_t length = strcspn(p, " ");
    if (!word_holds(n, p, length))
      return false;
    p += length;
    p += strspn(p, " ");
  }
  return true;
}

bool gradient_ends_at(const char *op) {
  for (size_t i = 0; i < RULE_COUNT; i++)
    if (strcmp(rules[i].op, op) == 0)
      return !rules[i].statements && rules[i].code == OK;
  return false;
}

status gradient_of_op(const struct graph *library, const struct attr_func *f, const char *prefix, struct arena *arena,
                      struct instance *out) {
  const struct node of = {.name = prefix, .op = f->name, .attrs = f->attrs, .attr_count = f->attr_count, .def = registry_find(f->name)};
  const struct rule *rule = NULL;
  for (size_t i = 0; i < RULE_COUNT && !rule && of.def; i++)
    if (strcmp(rules[i].op, f->name) == 0 && row_holds(&rules[i], &of))
      rule = &rules[i];
  if (!rule)
    return fail(NOT_FOUND, "No gradient defined for op: %s", f->name);
  if (rule->code != OK)
    return fail(rule->code, "%s: %s", f->name, rule->text);
  if (!rule->statements)
    return fail(INVALID_ARGUMENT, "No gradient is defined for %s", f->name);
  struct reader r = {.rule = rule, .of = &of, .graph = function_graph(library, arena), .prefix = prefix};
  struct instance made = {.graph = r.graph};
  status s = read_row(&r, &made);
  if (s != OK) {
    instance_deinit(&made);
    return status_prefix(s, "gradient of %s: ", f->name);
  }
  *out = made;
  return OK;
}
