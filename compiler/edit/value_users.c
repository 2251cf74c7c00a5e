/* value_users.c: see value_users.h. */
#include "compiler/edit/value_users.h"

#include <stdlib.h>
#include <string.h>

void value_users_add(struct value_users *users, flow_id user) {
  for (uint32_t i = 0; i < users->nodes.count; i++)
    if (users->nodes.items[i] == user)
      return;
  vec_push(&users->nodes, user);
}
void value_users_drop(struct value_users *users, flow_id user) {
  for (uint32_t i = 0; i < users->nodes.count; i++)
    if (users->nodes.items[i] == user) {
      memmove(&users->nodes.items[i], &users->nodes.items[i + 1], sizeof(flow_id) * (users->nodes.count - i - 1));
      users->nodes.count--;
      return;
    }
}

struct value_users *value_users_find(const struct flow *f) {
  struct value_users *users = calloc(f->values.count + 1, sizeof *users);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && i < n->inputs.count; i++)
      value_users_add(&users[n->inputs.items[i]], id);
    for (uint32_t i = 0; n && i < n->guard_count; i++)
      value_users_add(&users[n->guards[i].predicate], USER_OUTSIDE);
  }
  for (uint32_t i = 0; i < f->results.count; i++)
    value_users_add(&users[f->results.items[i]], USER_OUTSIDE);
  return users;
}
void value_users_free(struct value_users *users, uint32_t count) {
  for (uint32_t v = 0; v < count; v++)
    vec_free(&users[v].nodes);
  free(users);
}
