/* host_session_tensor.c: GetSessionHandle and what goes with it: tensors that a client keeps in the task from step to step, and feeds by
 * their handles: "NODE;NUMBER;DEVICE", as TensorFlow's session writes them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/memory/container.h"
#include "runtime/program/device_name.h"
#include "runtime/step/task_state.h"

#define HANDLE_SIZE 1024

struct kept {
  struct kept *next;
  struct tensor *tensor; /* a reference */
  char handle[HANDLE_SIZE];
};

struct session_tensors {
  struct resource resource; /* first */
  pthread_mutex_t lock;
  int64_t next; /* number */
  struct kept *kept;
};

static status session_init(struct resource *resource, void *argument) {
  (void)argument;
  pthread_mutex_init(&((struct session_tensors *)resource)->lock, NULL);
  return OK;
}

static void kept_free(struct kept *kept) {
  tensor_release(kept->tensor);
  free(kept);
}

static void session_destroy(struct resource *resource) {
  struct session_tensors *s = (struct session_tensors *)resource;
  for (struct kept *k = s->kept, *next; k; k = next) {
    next = k->next;
    kept_free(k);
  }
  pthread_mutex_destroy(&s->lock);
}

static const struct resource_maker session_maker = {"tensors of a session", sizeof(struct session_tensors), session_init, session_destroy};

/* One for the task: a handle is found wherever it is fed. */
static status find_session(const struct host_call *call, struct session_tensors **out) {
  bool is_new;
  struct resource *resource;
  TRY(container_get(call->task->container, "localhost", "session tensors", &session_maker, NULL, &is_new, &resource));
  *out = (struct session_tensors *)resource;
  return OK;
}

static int64_t next_number(struct session_tensors *s) {
  pthread_mutex_lock(&s->lock);
  int64_t number = s->next++;
  pthread_mutex_unlock(&s->lock);
  return number;
}

/* The tensor with its handle, which is output 0. */
static status make_kept(struct host_call *call, int64_t number, struct kept *kept) {
  char device[HANDLE_SIZE / 2];
  device_name(call->program, call->program->task, device, sizeof device);
  snprintf(kept->handle, sizeof kept->handle, "%.400s;%lld;%s", host_node_name(call), (long long)number, device);
  const struct string_view handle = {kept->handle, strlen(kept->handle)};
  TRY(host_keep_input(call, 0, &kept->tensor));
  return tensor_copy_in(DTYPE_STRING, &(struct shape){0}, &handle, &call->outputs[0]);
}

status host_session_keep(struct host_call *call) {
  struct session_tensors *s;
  TRY(find_session(call, &s));
  struct kept *kept = calloc(1, sizeof *kept);
  if (!kept)
    return fail(RESOURCE_EXHAUSTED, "no memory for a tensor of the session");
  status result = make_kept(call, next_number(s), kept);
  if (result != OK) {
    kept_free(kept);
    return result;
  }
  pthread_mutex_lock(&s->lock); /* from here on another step may delete it */
  kept->next = s->kept;
  s->kept = kept;
  pthread_mutex_unlock(&s->lock);
  return OK;
}

/* Under the lock: the place of the tensor with this handle; NULL: there is none. */
static struct kept **find_kept(struct session_tensors *s, struct string_view handle) {
  for (struct kept **at = &s->kept; *at; at = &(*at)->next)
    if (string_is(handle, (*at)->handle))
      return at;
  return NULL;
}

status host_session_get(struct host_call *call) {
  struct session_tensors *s;
  struct string_view handle = host_scalar_string(&call->inputs[0]);
  enum dtype wanted = (enum dtype)host_attr_int(call, "dtype", DTYPE_FLOAT);
  TRY(find_session(call, &s));
  pthread_mutex_lock(&s->lock);
  struct kept **at = find_kept(s, handle);
  struct tensor *found = at ? tensor_retain((*at)->tensor) : NULL;
  pthread_mutex_unlock(&s->lock);
  if (!found)
    return fail(INVALID_ARGUMENT, "The tensor with handle '%.*s' is not in the session store.", (int)handle.size, handle.data);
  call->outputs[0] = found;
  if (found->dtype != wanted)
    return fail(INVALID_ARGUMENT, "the tensor with handle '%.*s' is of %s, not of %s", (int)handle.size, handle.data,
                dtype_name(found->dtype), dtype_name(wanted));
  return OK;
}

status host_session_delete(struct host_call *call) {
  struct session_tensors *s;
  struct string_view handle = host_scalar_string(&call->inputs[0]);
  TRY(find_session(call, &s));
  pthread_mutex_lock(&s->lock);
  struct kept **at = find_kept(s, handle), *found = at ? *at : NULL;
  if (found)
    *at = found->next;
  pthread_mutex_unlock(&s->lock);
  if (!found)
    return fail(INVALID_ARGUMENT, "Failed to delete a tensor with handle '%.*s' in the session store.", (int)handle.size, handle.data);
  kept_free(found);
  return OK;
}
