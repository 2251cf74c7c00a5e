/* host_temporary.c: which temporary variables a step has: their memory is that of variables, here are the names.
 *
 * The list belongs to the handle that the step makes at its start, and goes with it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/memory/container.h"

struct temporary_name {
  struct temporary_name *next;
  char text[];
};
struct temporaries {
  struct resource resource;
  pthread_mutex_t lock;
  struct temporary_name *names;
};

static status temporaries_init(struct resource *resource, void *argument) {
  (void)argument;
  pthread_mutex_init(&((struct temporaries *)resource)->lock, NULL);
  return OK;
}

static void temporaries_destroy(struct resource *resource) {
  struct temporaries *t = (struct temporaries *)resource;
  while (t->names) {
    struct temporary_name *name = t->names;
    t->names = name->next;
    free(name);
  }
  pthread_mutex_destroy(&t->lock);
}

static const struct resource_maker temporaries_maker = {"temporaries", sizeof(struct temporaries), temporaries_init, temporaries_destroy};

status host_temporaries(struct host_call *call) {
  struct resource *made;
  return host_make_anonymous(call, &temporaries_maker, NULL, &made);
}

static struct temporary_name **find_name(struct temporaries *t, struct string_view name) {
  struct temporary_name **at = &t->names;
  while (*at && !string_is(name, (*at)->text))
    at = &(*at)->next;
  return at;
}

static status add_name(struct temporaries *t, struct string_view name) {
  struct temporary_name *added = malloc(sizeof *added + name.size + 1);
  if (!added)
    return fail(RESOURCE_EXHAUSTED, "no memory for a name");
  memcpy(added->text, name.data, name.size);
  added->text[name.size] = 0;
  added->next = t->names;
  t->names = added;
  return OK;
}

/* input: the step's list */
status host_make_temporary(struct host_call *call) {
  struct resource *resource;
  TRY(host_find_resource(call, 0, "temporaries", &resource));
  struct temporaries *t = (struct temporaries *)resource;
  struct string_view name = host_attr_string(call, "var_name", "");
  pthread_mutex_lock(&t->lock);
  bool twice = *find_name(t, name) || host_attr_int(call, "makers", 1) > 1;
  status result = twice ? fail(ALREADY_EXISTS, "Resource %.*s already exists.", (int)name.size, name.data) : add_name(t, name);
  pthread_mutex_unlock(&t->lock);
  return result;
}

status host_destroy_temporary(struct host_call *call) {
  struct resource *resource;
  TRY(host_find_resource(call, 0, "temporaries", &resource));
  struct temporaries *t = (struct temporaries *)resource;
  struct string_view text = host_attr_string(call, "var_name", "");
  pthread_mutex_lock(&t->lock);
  struct temporary_name **at = find_name(t, text), *name = *at;
  if (name)
    *at = name->next;
  pthread_mutex_unlock(&t->lock);
  free(name);
  return name ? OK : fail(NOT_FOUND, "Resource %.*s does not exist.", (int)text.size, text.data);
}
