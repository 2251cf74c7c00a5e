/* variable.c: a variable's value is replaced only when its shape changes or its elements are strings. */
#include "runtime/memory/variable.h"

#include <stdlib.h>
#include <string.h>

/* Elements as tables hold them: strings are offsets there. */
static status initial_value(const struct program *program, const struct program_variable *v, struct tensor **out) {
  struct shape shape = {.rank = (int)v->initial_rank};
  for (int i = 0; i < shape.rank; i++)
    shape.dims[i] = program_words(program, v->initial_dims)[i];
  const char *base = program_table(program, PROGRAM_DATA);
  if (v->dtype != DTYPE_STRING)
    return tensor_copy_in((enum dtype)v->dtype, &shape, base + v->initial, out);
  int64_t count = shape_count(&shape);
  const struct program_string *from = (const void *)(base + v->initial);
  struct string_view *views = calloc((size_t)count + 1, sizeof *views);
  if (!views)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (int64_t i = 0; i < count; i++)
    views[i] = (struct string_view){base + from[i].offset, from[i].size};
  status result = tensor_copy_in(DTYPE_STRING, &shape, views, out);
  free(views);
  return result;
}

static status load_value(struct variable *variable, const struct program *program, const struct program_variable *v) {
  if (v->has_initial == PROGRAM_INITIAL_NONE)
    return OK;
  if (v->has_initial == PROGRAM_INITIAL_ZERO) {
    TRY(tensor_create(variable->dtype, &variable->shape, &variable->value));
    if (variable->value->count)
      memset(variable->value->data, 0, (size_t)tensor_byte_size(variable->value));
  } else {
    TRY(initial_value(program, v, &variable->value));
  }
  atomic_store(&variable->initialized, true);
  return OK;
}

/* The words are those of struct program_variable. */
static void load_panels(struct variable *variable, const int64_t *words) {
  struct panels *p = &variable->panels;
  *p = (struct panels){.rank = (int)words[PANEL_RANK],
                       .lanes = (int)words[PANEL_LANES],
                       .count = words[PANEL_COUNT],
                       .width = words[PANEL_WIDTH],
                       .outer = (int)words[PANEL_OUTER]};
  for (int i = 0; i < p->rank; i++) {
    p->dims[i] = words[PANEL_WORDS + 2 * i];
    p->order[i] = (int)words[PANEL_WORDS + 2 * i + 1];
  }
  variable->dense = variable->shape;
  variable->shape.rank = p->rank + 1;
  panels_sizes(p, variable->shape.dims);
}

status variable_init(struct variable *variable, const struct program *program, uint32_t number) {
  const struct program_variable *v = program_variable(program, number);
  variable->name = program_text(program, v->name);
  variable->container = program_text(program, v->container);
  variable->slice = program_text(program, v->slice);
  variable->dtype = (enum dtype)v->dtype;
  variable->has_shape = v->has_shape;
  variable->is_resource = v->is_resource != 0;
  variable->shape.rank = v->rank;
  for (int i = 0; i < v->rank; i++)
    variable->shape.dims[i] = program_words(program, v->dims)[i];
  if (v->panels)
    load_panels(variable, program_words(program, v->panels - 1));
  pthread_mutex_init(&variable->lock, NULL);
  return load_value(variable, program, v);
}

void variable_deinit(struct variable *variable) {
  tensor_release(variable->value);
  tensor_release(variable->aside);
  pthread_mutex_destroy(&variable->lock);
}

status variable_copy(struct variable *variable, struct tensor **out) {
  *out = NULL;
  pthread_mutex_lock(&variable->lock);
  status result = atomic_load(&variable->initialized) ? tensor_clone(variable->value, out) : OK;
  pthread_mutex_unlock(&variable->lock);
  return result;
}

status variable_clone(struct variable *variable, struct variable *out) {
  struct tensor *value = NULL;
  pthread_mutex_lock(&variable->lock);
  bool has_value = atomic_load(&variable->initialized);
  status result = has_value ? tensor_clone(variable->value, &value) : OK;
  pthread_mutex_unlock(&variable->lock);
  TRY(result);
  *out = (struct variable){.name = variable->name,
                           .container = variable->container,
                           .slice = variable->slice,
                           .dtype = variable->dtype,
                           .has_shape = variable->has_shape,
                           .is_resource = variable->is_resource,
                           .shape = variable->shape,
                           .panels = variable->panels,
                           .dense = variable->dense,
                           .value = value,
                           .restored = variable->restored};
  atomic_init(&out->initialized, has_value);
  pthread_mutex_init(&out->lock, NULL);
  return OK;
}

void variable_swap(struct variable *variable, struct variable *clone) {
  pthread_mutex_lock(&variable->lock);
  variable_will_change(variable);
  struct tensor *value = variable->value;
  struct shape shape = variable->shape;
  bool has_value = atomic_load(&variable->initialized);
  variable->value = clone->value;
  variable->shape = clone->shape;
  atomic_store_explicit(&variable->initialized, atomic_load(&clone->initialized), memory_order_release);
  clone->value = value;
  clone->shape = shape;
  atomic_store(&clone->initialized, has_value);
  pthread_mutex_unlock(&variable->lock);
}

static bool is_initialized(struct variable *variable) { return atomic_load_explicit(&variable->initialized, memory_order_acquire); }

status variable_check(struct variable *variable) {
  if (is_initialized(variable))
    return OK;
  if (variable->is_resource)
    return fail(NOT_FOUND, "Resource %s/%s does not exist: it is not initialized", variable->container, variable->name);
  return fail(FAILED_PRECONDITION, "Attempting to use uninitialized value %s", variable->name);
}

status variable_read(struct variable *variable, struct tensor **out) {
  pthread_mutex_lock(&variable->lock);
  bool has_value = is_initialized(variable); /* under the lock: another step may forget it */
  if (has_value)
    *out = tensor_retain(variable->value);
  pthread_mutex_unlock(&variable->lock);
  return has_value ? OK : fail(FAILED_PRECONDITION, "Attempting to use uninitialized value %s", variable->name);
}

bool variable_forget(struct variable *variable) {
  pthread_mutex_lock(&variable->lock);
  variable_will_change(variable);
  bool had = atomic_exchange(&variable->initialized, false);
  tensor_release(variable->value);
  variable->value = NULL;
  pthread_mutex_unlock(&variable->lock);
  return had;
}

void variable_reload(struct variable *variable, const struct program *program, uint32_t number) {
  variable_forget(variable);
  pthread_mutex_lock(&variable->lock);
  if (!variable->value && load_value(variable, program, program_variable(program, number)) != OK) {
    tensor_release(variable->value);
    variable->value = NULL;
  }
  pthread_mutex_unlock(&variable->lock);
}

static status refuse_shape(const struct variable *variable, const struct shape *is, const struct shape *assigned) {
  return fail(INVALID_ARGUMENT, "variable '%s' has shape %s, assigned is %s", variable->name, shape_text(is), shape_text(assigned));
}
static status variable_check_shape(const struct variable *variable, const struct shape *shape) {
  bool fits = !variable->has_shape || shape_equal(&variable->shape, shape);
  return fits ? OK : refuse_shape(variable, &variable->shape, shape);
}

status variable_prepare(struct variable *variable, const struct shape *shape) {
  TRY(variable_check_shape(variable, shape));
  if (variable->value && shape_equal(&variable->value->shape, shape))
    return OK;
  struct tensor *value;
  TRY(tensor_create(variable->dtype, shape, &value));
  tensor_release(variable->value);
  variable->value = value;
  return OK;
}

static status assign_locked(struct variable *variable, const struct shape *shape, const void *data) {
  variable_will_change(variable);
  if (variable->dtype == DTYPE_STRING) {
    TRY(variable_check_shape(variable, shape));
    struct tensor *value;
    TRY(tensor_copy_in(DTYPE_STRING, shape, data, &value));
    tensor_release(variable->value);
    variable->value = value;
    return OK;
  }
  struct tensor *old = variable->value ? tensor_retain(variable->value) : NULL; /* data may be its memory */
  status result = variable_prepare(variable, shape);
  if (result == OK && variable->value->count > 0)
    memmove(variable->value->data, data, (size_t)tensor_byte_size(variable->value));
  tensor_release(old);
  return result;
}

/* ---- a copy aside ---- */

static bool lies_in_panels(const struct variable *variable) { return variable->panels.rank > 0; }
/* Instead of the value in panels. */
static status make_dense(const struct variable *variable, struct tensor **value) {
  struct tensor *packed = *value;
  status result = tensor_create(variable->dtype, &variable->dense, value);
  if (result == OK)
    panels_unpack(&variable->panels, packed->data, dtype_size(variable->dtype), (*value)->data);
  else
    *value = NULL;
  tensor_release(packed);
  return result;
}

static bool aside_fits(const struct variable *variable, const struct shape *shape) {
  return variable->aside && shape_equal(&variable->aside->shape, shape);
}

void variable_prepare_aside(struct variable *variable) {
  struct tensor *aside;
  pthread_mutex_lock(&variable->lock);
  struct shape shape = variable->value ? variable->value->shape : variable->shape;
  bool is_known = variable->value || variable->has_shape;
  bool wanted = variable->dtype != DTYPE_STRING && is_known && !aside_fits(variable, &shape);
  pthread_mutex_unlock(&variable->lock);
  if (!wanted || tensor_create(variable->dtype, &shape, &aside) != OK)
    return;
  if (aside->count)
    memset(aside->data, 0, (size_t)tensor_byte_size(aside));
  pthread_mutex_lock(&variable->lock);
  bool has_copy = variable->aside_state == ASIDE_COPIED; /* a checkpoint began meanwhile, and a step has made its copy */
  struct tensor *spare = has_copy ? aside : variable->aside;
  variable->aside = has_copy ? variable->aside : aside;
  pthread_mutex_unlock(&variable->lock);
  tensor_release(spare);
}

void variable_mark(struct variable *variable) {
  pthread_mutex_lock(&variable->lock);
  variable->aside_state = atomic_load(&variable->initialized) ? ASIDE_MARKED : ASIDE_NONE;
  pthread_mutex_unlock(&variable->lock);
}

void variable_copy_aside(struct variable *variable) {
  const struct tensor *value = variable->value;
  variable->aside_state = ASIDE_FAILED;
  if (variable->dtype == DTYPE_STRING || !aside_fits(variable, &value->shape)) {
    tensor_release(variable->aside);
    variable->aside = NULL;
  }
  if (variable->dtype == DTYPE_STRING)
    variable->aside = tensor_retain(variable->value); /* strings are replaced, not changed */
  else if (!variable->aside && tensor_create(variable->dtype, &value->shape, &variable->aside) != OK)
    return;
  else if (value->count > 0)
    memcpy(variable->aside->data, value->data, (size_t)tensor_byte_size(value));
  variable->aside_state = ASIDE_COPIED;
}

status variable_take_aside(struct variable *variable, struct tensor **out) {
  pthread_mutex_lock(&variable->lock);
  variable_will_change(variable);
  enum aside state = variable->aside_state;
  variable->aside_state = ASIDE_NONE;
  struct tensor *aside = state == ASIDE_COPIED ? tensor_retain(variable->aside) : NULL;
  pthread_mutex_unlock(&variable->lock);
  *out = aside;
  if (state == ASIDE_FAILED)
    return fail(RESOURCE_EXHAUSTED, "no memory for a copy of '%s'", variable->name);
  return aside && lies_in_panels(variable) ? make_dense(variable, out) : OK;
}

/* ---- assigning ---- */

status variable_assign(struct variable *variable, const struct shape *shape, const void *data) {
  pthread_mutex_lock(&variable->lock);
  status result = assign_locked(variable, shape, data);
  if (result == OK)
    atomic_store_explicit(&variable->initialized, true, memory_order_release);
  pthread_mutex_unlock(&variable->lock);
  return result;
}

status variable_restore(struct variable *variable, const struct shape *shape, const void *data) {
  if (!lies_in_panels(variable))
    return variable_assign(variable, shape, data);
  if (!shape_equal(&variable->dense, shape))
    return refuse_shape(variable, &variable->dense, shape);
  pthread_mutex_lock(&variable->lock);
  variable_will_change(variable);
  status result = variable_prepare(variable, &variable->shape);
  if (result == OK) {
    panels_pack(&variable->panels, data, dtype_size(variable->dtype), variable->value->data);
    atomic_store_explicit(&variable->initialized, true, memory_order_release);
  }
  pthread_mutex_unlock(&variable->lock);
  return result;
}
