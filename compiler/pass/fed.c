/* fed.c: a placeholder that nobody feeds is an error of the build where every step uses it, and of the step where a cond decides. Loops and
 * conds may take it and not use it. */
#include <string.h>

#include "compiler/pass/pass.h"
#include "compiler/edit/region_trim.h"

/* The first placeholder that every step needs; NULL: none. */
static const struct flow_node *find_unfed(const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (n && n->op == FLOW_HOST && strcmp(n->host, "not_fed") == 0 && !n->guard_count)
      return n;
  }
  return NULL;
}

static status check_flow(struct flow *f) {
  const struct flow_node *n = find_unfed(f);
  while (n && flow_trim_regions(f)) {
    flow_drop_dead(f);
    n = find_unfed(f);
  }
  if (!n)
    return OK;
  status s = fail(INVALID_ARGUMENT, "%s (%s): You must feed a value for placeholder tensor '%s' with dtype %s", n->name, n->tf_op, n->name,
                  dtype_name(f->values.items[n->outputs.items[0]].dtype));
  return n->place ? status_suffix(s, "; made at %s", n->place) : s;
}

status pass_fed(struct build *b) {
  for (uint32_t i = 0; i < b->entries.count; i++)
    TRY(check_flow(b->entries.items[i].flow));
  return OK;
}
