/* mishap.c: drawing and telling what goes wrong. */
#include "tests/simulator/mishap.h"

#include <stdio.h>

#include "tests/simulator/net.h"

/* Short times are as likely as long ones: 0.1 ms .. `most`. */
static uint64_t draw_time(struct random *random, uint64_t most_ns) {
  uint64_t time = most_ns;
  for (uint64_t halvings = random_below(random, 16); halvings > 0 && time > 100 * WORLD_US; halvings--)
    time /= 2;
  return time / 2 + random_below(random, time / 2 + 1);
}

bool mishap_is_of_ps(enum mishap_kind kind) {
  return kind == MISHAP_KILL_PS || kind == MISHAP_POWER_PS || kind == MISHAP_WIPE || kind == MISHAP_FULL;
}

bool mishap_is_of_worker(enum mishap_kind kind) {
  return kind == MISHAP_KILL || kind == MISHAP_POWER || kind == MISHAP_LOSE || kind == MISHAP_TWIN || kind == MISHAP_TEAR ||
         kind == MISHAP_LATE;
}

static void draw_tasks(struct random *random, uint32_t ps_count, uint32_t task_count, struct mishap *m) {
  bool of_ps = mishap_is_of_ps(m->kind), of_worker = mishap_is_of_worker(m->kind);
  uint32_t first = of_worker ? ps_count : 0, count = of_ps ? ps_count : task_count - first;
  m->a = first + (uint32_t)random_below(random, count);
  m->b = (m->a + 1 + (uint32_t)random_below(random, task_count - 1)) % task_count;
}

uint32_t mishaps_draw(struct random *random, uint32_t allowed, uint32_t ps_count, uint32_t task_count, uint64_t turns, struct mishap *out) {
  enum mishap_kind kinds[MISHAP_KINDS];
  uint32_t kind_count = 0;
  for (int kind = 0; kind < MISHAP_KINDS; kind++)
    if (allowed & MISHAP(kind) && (ps_count || !mishap_is_of_ps((enum mishap_kind)kind)))
      kinds[kind_count++] = (enum mishap_kind)kind;
  uint32_t count = kind_count ? (uint32_t)random_below(random, random_below(random, 2) ? MISHAPS_MAX : 3) : 0;
  for (uint32_t i = 0; i < count; i++) {
    struct mishap *m = &out[i];
    *m = (struct mishap){.kind = kinds[random_below(random, kind_count)], .at_turn = random_below(random, turns)};
    if (m->kind == MISHAP_FULL) /* a task that finds it so when it starts does not start */
      m->at_turn = turns / 3 + m->at_turn * 2 / 3;
    draw_tasks(random, ps_count, task_count, m);
    m->after_ns = random_below(random, 2) ? draw_time(random, WORLD_S) : 0;
    m->how = (uint32_t)random_below(random, NET_CUT_COUNT);
    m->amount = m->kind == MISHAP_CUT  ? random_below(random, 4) ? random_below(random, 1000) : 0
              : m->kind == MISHAP_SLOW ? draw_time(random, WORLD_S)
                                       : draw_time(random, 100 * WORLD_S);
    m->back_ns = draw_time(random, random_below(random, 4) ? 2 * WORLD_S : 12 * WORLD_S);
  }
  return count;
}

void mishaps_aim(struct random *random, uint32_t moments, struct mishap *mishaps, uint32_t count) {
  enum moment kinds[MOMENTS];
  uint32_t kind_count = 0;
  for (int moment = 0; moment < MOMENTS; moment++)
    if (moments & MOMENT(moment))
      kinds[kind_count++] = (enum moment)moment;
  for (uint32_t i = 0; i < count && kind_count; i++) {
    if (random_below(random, 8) == 0)
      continue;
    mishaps[i].moment = kinds[random_below(random, kind_count)];
    mishaps[i].moment_count = 1 + (uint32_t)random_below(random, UINT64_C(1) << random_below(random, 6));
    if (random_below(random, 2))
      mishaps[i].after_ns = 0;
  }
}

void mishap_text(const struct mishap *m, char *out, size_t size) {
  static const char *const cuts[] = {"reset", "ended", "reset at one end", "swallowed"};
  double back = (double)m->back_ns / 1e9, amount = (double)m->amount / 1e9;
  static const char *const moments[MOMENTS] = {"",
                                               "link up",
                                               "step changes",
                                               "step committed",
                                               "commits stopped",
                                               "values marked",
                                               "a file named",
                                               "files written",
                                               "all are written",
                                               "named whole",
                                               "gone back to one",
                                               "round decided",
                                               "replica let in",
                                               "somebody is gone",
                                               "good-bye"};
  int at = m->moment ? snprintf(out, size, "%u. %-15s %8.4f s later ", m->moment_count, moments[m->moment], (double)m->after_ns / 1e9)
                     : snprintf(out, size, "turn %-6llu %8.4f s later ", (unsigned long long)m->at_turn, (double)m->after_ns / 1e9);
  out += at;
  size -= (size_t)at;
  switch (m->kind) {
  case MISHAP_CUT:
    snprintf(out, size, "the connection of tasks %u and %u is %s, %llu bytes later", m->a, m->b, cuts[m->how],
             (unsigned long long)m->amount);
    break;
  case MISHAP_BLOCK: snprintf(out, size, "nothing passes between tasks %u and %u for %.4f s", m->a, m->b, back); break;
  case MISHAP_REFUSE: snprintf(out, size, "connections to task %u are refused for %.4f s", m->a, back); break;
  case MISHAP_SLOW: snprintf(out, size, "what goes between tasks %u and %u takes %.4f s more for %.4f s", m->a, m->b, amount, back); break;
  case MISHAP_PAUSE: snprintf(out, size, "task %u is stopped for %.4f s", m->a, back); break;
  case MISHAP_CLOCK: snprintf(out, size, "the clock of task %u goes %s by %.4f s", m->a, m->how % 2 ? "forth" : "back", amount); break;
  case MISHAP_KILL:
  case MISHAP_KILL_PS: snprintf(out, size, "task %u is killed, and is back after %.4f s", m->a, back); break;
  case MISHAP_POWER:
  case MISHAP_POWER_PS: snprintf(out, size, "the machine of task %u has no power for %.4f s", m->a, back); break;
  case MISHAP_FULL: snprintf(out, size, "the disk of task %u is full for %.4f s", m->a, back); break;
  case MISHAP_WIPE: snprintf(out, size, "task %u is killed, and is back after %.4f s without its disk", m->a, back); break;
  case MISHAP_LOSE: snprintf(out, size, "task %u is killed for good", m->a); break;
  case MISHAP_TWIN: snprintf(out, size, "task %u is started a second time", m->a); break;
  case MISHAP_TEAR: snprintf(out, size, "task %u is killed with some of what it said last, and is back after %.4f s", m->a, back); break;
  case MISHAP_TERM: snprintf(out, size, "task %u gets SIGTERM, and is back after %.4f s", m->a, back); break;
  case MISHAP_KILL_ALL: snprintf(out, size, "all tasks are killed, and are back after %.4f s", back); break;
  case MISHAP_STICK: snprintf(out, size, "the connection of tasks %u and %u is stuck for %.4f s", m->a, m->b, amount); break;
  case MISHAP_LATE:
    snprintf(out, size, "task %u is killed, what it has said to task %u takes %.4f s more, and it is back after %.4f s", m->a, m->b, amount,
             back);
    break;
  case MISHAP_MEMORY: snprintf(out, size, "task %u has no memory for copies for %.4f s", m->a, back); break;
  case MISHAP_KINDS: break;
  }
}
