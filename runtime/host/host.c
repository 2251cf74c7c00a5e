/* host.c: the host functions by name, and what they use to read their call, and to answer it. */
#include "runtime/host/host.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/host/object.h"

#define HOST(name, function) status function(struct host_call *call);
#define ROUND HOST
#define PART(name, function) __attribute__((weak)) status function(struct host_call *call);
#define USES(name, part)
#include "runtime/host/host.def"
#undef HOST
#undef ROUND
#undef PART

static const struct {
  const char *name;
  host_function function;
} rows[] = {
#define HOST(name, function) {#name, function},
#define ROUND HOST
#define PART(name, function) {#name, function},
#include "runtime/host/host.def"
#undef HOST
#undef ROUND
#undef PART
#undef USES
};

host_function host_find(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0)
      return rows[i].function;
  return NULL;
}

void host_finish(struct host_call *call, status code, const char *text) {
  call->code = code;
  snprintf(call->text, sizeof call->text, "%s", text ? text : "");
  if (call->finished)
    call->finished(call);
  else
    inbox_put(call->inbox, &call->item);
}

/* ---- the function's side ---- */

status host_keep_input(const struct host_call *call, uint32_t i, struct tensor **out) {
  if (call->held[i]) {
    *out = tensor_retain(call->held[i]);
    return OK;
  }
  if (tensor_has_objects(&call->inputs[i]))
    return objects_share(&call->inputs[i], 0, &call->inputs[i].shape, out);
  return tensor_copy_in(call->inputs[i].dtype, &call->inputs[i].shape, call->inputs[i].data, out);
}

bool host_owns_input(const struct host_call *call, uint32_t i) {
  const uint32_t *args = program_operands(call->program, call->instr->args.first);
  const uint32_t *release = program_operands(call->program, call->instr->release.first);
  if (!call->held[i] || atomic_load(&call->held[i]->references) != 1)
    return false;
  for (uint32_t j = 0; j < call->input_count; j++)
    if (j != i && call->inputs[j].data == call->inputs[i].data)
      return false; /* the same value again */
  for (uint32_t k = 0; k < call->instr->release.count; k++)
    if (release[k] == args[i])
      return true;
  return false;
}

status host_make_output(struct host_call *call, uint32_t i, enum dtype dtype, const struct shape *shape) {
  return tensor_create(dtype, shape, &call->outputs[i]);
}

status host_give_number(struct host_call *call, uint32_t i, enum dtype dtype, int64_t value) {
  TRY(host_make_output(call, i, dtype, &(struct shape){0}));
  void *data = call->outputs[i]->data;
  switch (dtype) {
  case DTYPE_BOOL: *(bool *)data = value != 0; break;
  case DTYPE_INT32: *(int32_t *)data = (int32_t)value; break;
  default: *(int64_t *)data = value; break;
  }
  return OK;
}

const struct program_attr *host_attr(const struct host_call *call, const char *name) {
  for (uint32_t i = 0; i < call->instr->attrs.count; i++) {
    const struct program_attr *attr = program_attr(call->program, call->instr->attrs.first + i);
    if (strcmp(program_text(call->program, attr->name), name) == 0)
      return attr;
  }
  return NULL;
}

int64_t host_attr_int(const struct host_call *call, const char *name, int64_t otherwise) {
  const struct program_attr *attr = host_attr(call, name);
  return attr ? attr->i : otherwise;
}

double host_attr_float(const struct host_call *call, const char *name, double otherwise) {
  const struct program_attr *attr = host_attr(call, name);
  return attr ? attr->f : otherwise;
}

struct string_view host_attr_string(const struct host_call *call, const char *name, const char *otherwise) {
  const struct program_attr *attr = host_attr(call, name);
  if (!attr)
    return (struct string_view){otherwise, strlen(otherwise)};
  return (struct string_view){(const char *)program_table(call->program, PROGRAM_DATA) + attr->offset, attr->size};
}

const char *host_node_name(const struct host_call *call) { return program_text(call->program, call->instr->node); }

status host_read_shape(const struct host_call *call, const struct program_attr *attr, struct shape *out) {
  *out = (struct shape){.rank = -1};
  if (!attr || attr->i < 0)
    return OK;
  if (attr->i > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a shape of rank %lld", (long long)attr->i);
  out->rank = (int)attr->i;
  for (int d = 0; d < out->rank; d++)
    out->dims[d] = *program_words(call->program, attr->list.first + (uint32_t)d);
  return OK;
}

int64_t host_scalar_int(const struct tensor *tensor) {
  if (tensor->count < 1)
    return 0;
  return tensor->dtype == DTYPE_INT64 ? *(const int64_t *)tensor->data : *(const int32_t *)tensor->data;
}

struct string_view host_scalar_string(const struct tensor *tensor) {
  if (tensor->count < 1 || tensor->dtype != DTYPE_STRING)
    return (struct string_view){"", 0};
  return *(const struct string_view *)tensor->data;
}
