/* value_users.h: who takes each value of a flow. */
#ifndef TFC_COMPILER_VALUE_USERS_H
#define TFC_COMPILER_VALUE_USERS_H

#include "ir/flow/flow.h"

#define USER_OUTSIDE UINT32_MAX /* a guard, or the flow's results: it stays, whatever becomes of nodes */

struct value_users {
  VEC(flow_id) nodes; /* in order, once each; USER_OUTSIDE where it is no node */
};

/* By value, as many as the flow has now; the caller's, who calls value_users_free with that number. */
struct value_users *value_users_find(const struct flow *f);
void value_users_free(struct value_users *users, uint32_t count);
void value_users_add(struct value_users *users, flow_id user);
void value_users_drop(struct value_users *users, flow_id user);

#endif
