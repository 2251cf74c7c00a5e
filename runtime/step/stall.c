/* stall.c: own waits and those of others, put together. */
#include "runtime/step/stall.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD 16
#define HOPS 6         /* of "held up by A, which waits ..." */
#define SAID_WAITS 3   /* in a line */
#define HEARD_MS 40000 /* what was told is forgotten then: who waits tells again */
#define TELL_AGAIN_MS 15000
#define RING_MAX 64 /* drivers that are looked at for a ring */

struct list {
  struct stall_wait waits[STALL_WAITS];
  uint32_t count;
  uint64_t heard_ms;
};
struct stall {
  uint32_t self, task_count;
  const char *const *names;
  struct list own;
  struct list **others; /* per task; NULL: has told nothing */
  char (*states)[STALL_TEXT];
  uint64_t told, told_ms; /* hash of what was told last; 0: nothing */
  uint64_t said, said_ms; /* of the answer */
};

status stall_create(uint32_t self, uint32_t task_count, const char *const *names, struct stall **out) {
  struct stall *stall = calloc(1, sizeof *stall);
  if (stall) {
    *stall = (struct stall){.self = self, .task_count = task_count, .names = names};
    stall->others = calloc((size_t)task_count + 1, sizeof *stall->others);
    stall->states = calloc((size_t)task_count + 1, sizeof *stall->states);
  }
  if (!stall || !stall->others || !stall->states) {
    stall_destroy(stall);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  *out = stall;
  return OK;
}

void stall_destroy(struct stall *stall) {
  if (!stall)
    return;
  for (uint32_t i = 0; stall->others && i < stall->task_count; i++)
    free(stall->others[i]);
  free(stall->others);
  free(stall->states);
  free(stall);
}

static bool is_same(const struct stall_wait *a, const struct stall_wait *b) {
  return a->step == b->step && a->place == b->place && a->kind == b->kind;
}

static int compare_age(const void *a, const void *b) {
  const struct stall_wait *x = a, *y = b;
  if (x->since_ms != y->since_ms)
    return x->since_ms < y->since_ms ? -1 : 1;
  return x->step != y->step ? (x->step < y->step ? -1 : 1) : x->place < y->place ? -1 : x->place > y->place;
}

void stall_see(struct stall *stall, uint64_t now_ms, const struct stall_wait *waits, uint32_t count) {
  struct list next = {.count = count < STALL_WAITS ? count : STALL_WAITS};
  for (uint32_t i = 0; i < next.count; i++) {
    struct stall_wait *wait = &next.waits[i];
    *wait = waits[i];
    wait->since_ms = now_ms;
    for (uint32_t j = 0; j < stall->own.count; j++)
      if (is_same(wait, &stall->own.waits[j]))
        wait->since_ms = stall->own.waits[j].since_ms;
  }
  qsort(next.waits, next.count, sizeof *next.waits, compare_age);
  stall->own = next;
}

void stall_note(struct stall *stall, uint32_t task, const char *state) {
  if (task < stall->task_count)
    snprintf(stall->states[task], sizeof stall->states[task], "%s", state);
}

/* ---- text ---- */

struct text {
  char *to;
  size_t size, used;
  const struct stall_wait *told[TOLD]; /* waits that it has spoken of: each once */
  uint32_t told_count;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...) {
  if (text->used + 1 >= text->size)
    return;
  va_list args;
  va_start(args, format);
  int count = vsnprintf(text->to + text->used, text->size - text->used, format, args);
  va_end(args);
  text->used += count > 0 ? (size_t)count : 0;
  if (text->used >= text->size)
    text->used = text->size - 1;
}

static const char *name_of(const struct stall *stall, uint32_t task) { return task < stall->task_count ? stall->names[task] : "?"; }

static const struct list *list_of(const struct stall *stall, uint32_t task) {
  return task == stall->self ? &stall->own : task < stall->task_count ? stall->others[task] : NULL;
}

static bool is_leaf(const struct stall_wait *wait) { return wait->kind == STALL_RESOURCE || wait->kind == STALL_ROUND; }

/* Whether it was spoken of before; it has been from now on. */
static bool tell_once(struct text *text, const struct stall_wait *wait) {
  for (uint32_t i = 0; i < text->told_count; i++)
    if (text->told[i] == wait)
      return false;
  if (text->told_count < TOLD)
    text->told[text->told_count++] = wait;
  return true;
}

/* Why task does not go on with a step: what it waits for itself. */
static const struct stall_wait *wait_in_step(const struct stall *stall, uint32_t task, uint64_t step) {
  const struct list *list = list_of(stall, task);
  const struct stall_wait *found = NULL;
  for (uint32_t i = 0; list && i < list->count; i++)
    if (list->waits[i].step == step && (!found || (is_leaf(&list->waits[i]) && !is_leaf(found))))
      found = &list->waits[i];
  return found;
}

/* Where a step of the driver waits in something that steps share; *where: the task. */
static const struct stall_wait *leaf_of_driver(const struct stall *stall, uint32_t driver, uint32_t *where) {
  for (uint32_t task = 0; task < stall->task_count; task++) {
    const struct list *list = list_of(stall, task);
    for (uint32_t i = 0; list && i < list->count; i++)
      if (list->waits[i].driver == driver && is_leaf(&list->waits[i])) {
        *where = task;
        return &list->waits[i];
      }
  }
  return NULL;
}

/* ", which ": what a task waits for itself; ", which on ps_0 ": its step there. */
static void add_place(const struct stall *stall, struct text *text, uint32_t task, uint32_t where) {
  add(text, ", which %s%s%s", where == task ? "" : "on ", where == task ? "" : name_of(stall, where), where == task ? "" : " ");
}

/* "; held up by ps_0, which waits in ..., held up by worker_1, which is not connected" */
static void add_holders(const struct stall *stall, struct text *text, const struct stall_wait *wait, uint32_t depth) {
  if (wait->holder_count == 0 || depth == HOPS)
    return;
  add(text, "%sheld up by ", depth ? ", " : "; ");
  for (uint32_t i = 0; i < wait->holder_count; i++)
    add(text, "%s%s",
        i == 0                        ? ""
        : i + 1 == wait->holder_count ? (wait->kind == STALL_RESOURCE ? " or " : " and ")
                                      : ", ",
        name_of(stall, wait->holders[i]));
  uint32_t holder = wait->holders[0], where = holder;
  const struct stall_wait *next = is_leaf(wait) ? leaf_of_driver(stall, holder, &where) : wait_in_step(stall, holder, wait->step);
  if (holder < stall->task_count && stall->states[holder][0]) {
    add(text, ", which %s", stall->states[holder]);
  } else if (next && tell_once(text, next)) {
    add_place(stall, text, holder, where);
    add(text, "%s", next->what);
    add_holders(stall, text, next, depth + 1);
  }
}

/* ---- rings ---- */

/* A driver, and where its step stands. */
struct node {
  uint32_t driver, where;
  const struct stall_wait *wait;
  bool is_stuck;
};

static const struct node *node_of(const struct node *nodes, uint32_t count, uint32_t driver) {
  for (uint32_t i = 0; i < count; i++)
    if (nodes[i].driver == driver)
      return &nodes[i];
  return NULL;
}

/* Nobody outside can end its wait: every one who could is stuck; of a round: one who has to come is. */
static bool stays_stuck(const struct node *nodes, uint32_t count, const struct node *node) {
  uint32_t stuck = 0;
  for (uint32_t i = 0; i < node->wait->holder_count; i++) {
    const struct node *holder = node_of(nodes, count, node->wait->holders[i]);
    stuck += holder && holder->is_stuck;
  }
  return node->wait->kind == STALL_ROUND ? stuck > 0 : stuck > 0 && stuck == node->wait->holder_count;
}

static uint32_t find_stuck(const struct stall *stall, struct node *nodes) {
  uint32_t count = 0;
  for (uint32_t driver = 0; driver < stall->task_count && count < RING_MAX; driver++) {
    uint32_t where = driver;
    const struct stall_wait *wait = leaf_of_driver(stall, driver, &where);
    if (wait)
      nodes[count++] = (struct node){driver, where, wait, true};
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < count; i++)
      if (nodes[i].is_stuck && !stays_stuck(nodes, count, &nodes[i])) {
        nodes[i].is_stuck = false;
        changed = true;
      }
  }
  return count;
}

static const struct node *next_stuck(const struct node *nodes, uint32_t count, const struct node *node) {
  for (uint32_t i = 0; i < node->wait->holder_count; i++) {
    const struct node *holder = node_of(nodes, count, node->wait->holders[i]);
    if (holder && holder->is_stuck)
      return holder;
  }
  return NULL;
}

/* Whether a wait of this task belongs to the driver's step. */
static bool concerns_us(const struct stall *stall, uint32_t driver) {
  if (driver == stall->self)
    return true;
  for (uint32_t i = 0; i < stall->own.count; i++)
    if (stall->own.waits[i].driver == driver)
      return true;
  return false;
}

/* The drivers of a ring that concerns us, in its order; 0: there is none. */
static uint32_t find_ring(const struct stall *stall, struct node ring[RING_MAX]) {
  struct node nodes[RING_MAX];
  uint32_t count = find_stuck(stall, nodes), length = 0;
  const struct node *at = NULL;
  for (uint32_t i = 0; i < count && !at; i++)
    if (nodes[i].is_stuck && concerns_us(stall, nodes[i].driver))
      at = &nodes[i];
  for (uint32_t i = 0; at && i < count; i++) /* into the ring */
    at = next_stuck(nodes, count, at);
  for (const struct node *first = at; at && length < count;) {
    ring[length++] = *at;
    at = next_stuck(nodes, count, at);
    if (at == first)
      break;
  }
  return length;
}

static void add_ring(const struct stall *stall, struct text *text, const struct node *ring, uint32_t length) {
  for (uint32_t i = 0; i < length; i++) {
    add(text, "%s", name_of(stall, ring[i].driver));
    add_place(stall, text, ring[i].driver, ring[i].where);
    add(text, "%s -> ", ring[i].wait->what);
  }
  if (length)
    add(text, "%s", name_of(stall, ring[0].driver));
}

static uint64_t hash_text(const char *text) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *text; text++)
    hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash | 1;
}

/* One wait for each step: where it stands in something shared, else the first. */
static bool is_spoken_for(const struct list *list, uint32_t at) {
  const struct stall_wait *wait = &list->waits[at];
  for (uint32_t i = 0; i < list->count && wait->step; i++) {
    const struct stall_wait *other = &list->waits[i];
    bool is_better = is_leaf(other) != is_leaf(wait) ? is_leaf(other) : i < at;
    if (i != at && other->step == wait->step && is_better)
      return true;
  }
  return false;
}

/* When people look at a clock; NO_CLOCK: no times, what was said before is compared. */
#define NO_CLOCK UINT32_MAX

static void add_since(struct text *text, uint64_t age_ms, uint32_t clock_s) {
  uint32_t age_s = (uint32_t)(age_ms / 1000), day = 24 * 60 * 60;
  if (clock_s == NO_CLOCK || age_s == 0)
    return;
  uint32_t since = (clock_s % day + day - age_s % day) % day;
  add(text, ", since %02u:%02u:%02u (%u s)", since / 3600, since / 60 % 60, since % 60, age_s);
}

/* How many waits there are of at least min_ms, and what there is to be said of them. */
static uint32_t answer(const struct stall *stall, uint64_t now_ms, uint32_t clock_s, uint64_t min_ms, struct text *text) {
  uint32_t count = 0, more = 0;
  struct node ring[RING_MAX];
  uint32_t ring_length = find_ring(stall, ring);
  for (uint32_t i = 0; i < ring_length; i++) /* said at the end */
    tell_once(text, ring[i].wait);
  for (uint32_t i = 0; i < stall->own.count; i++) {
    const struct stall_wait *wait = &stall->own.waits[i];
    if (now_ms - wait->since_ms < min_ms || is_spoken_for(&stall->own, i))
      continue;
    if (++count > SAID_WAITS) {
      more++;
      continue;
    }
    add(text, "%s%s", count > 1 ? "; also " : "", wait->what);
    add_since(text, now_ms - wait->since_ms, clock_s);
    tell_once(text, wait);
    add_holders(stall, text, wait, 0);
  }
  if (more)
    add(text, "; and %u more", more);
  if (count && ring_length) {
    add(text, "; these wait for each other: ");
    add_ring(stall, text, ring, ring_length);
  }
  return count;
}

void stall_report(const struct stall *stall, uint64_t now_ms, uint32_t clock_s, uint64_t min_ms, char *out, size_t size) {
  struct text text = {.to = out, .size = size};
  *out = 0;
  answer(stall, now_ms, clock_s, min_ms, &text);
}

bool stall_say(struct stall *stall, uint64_t now_ms, uint32_t clock_s, char *line, size_t size) {
  char words[2048] = "";
  struct text text = {.to = words, .size = sizeof words};
  if (answer(stall, now_ms, NO_CLOCK, STALL_SAY_MS, &text) == 0) {
    stall->said = 0;
    return false;
  }
  uint64_t hash = hash_text(words), again_ms = hash == stall->said ? STALL_AGAIN_MS : STALL_CHANGED_MS;
  if (stall->said && now_ms - stall->said_ms < again_ms)
    return false;
  stall->said = hash;
  stall->said_ms = now_ms;
  stall_report(stall, now_ms, clock_s, STALL_SAY_MS, line, size);
  return true;
}

/* ---- what tasks tell each other: count, then for each wait its fields, little-endian as the machine has them ---- */

struct bytes {
  unsigned char *to;
  size_t used, size;
  bool is_short;
};

static void put(struct bytes *bytes, const void *data, size_t size) {
  if (bytes->size - bytes->used < size) {
    bytes->is_short = true;
    return;
  }
  memcpy(bytes->to + bytes->used, data, size);
  bytes->used += size;
}

static void get(struct bytes *bytes, void *data, size_t size) {
  memset(data, 0, size);
  if (bytes->size - bytes->used < size) {
    bytes->is_short = true;
    return;
  }
  memcpy(data, bytes->to + bytes->used, size);
  bytes->used += size;
}

static void put_wait(struct bytes *bytes, const struct stall_wait *wait, uint64_t now_ms) {
  uint64_t age_ms = now_ms - wait->since_ms;
  uint8_t kind = (uint8_t)wait->kind, holders = (uint8_t)wait->holder_count;
  uint16_t size = (uint16_t)strlen(wait->what);
  put(bytes, &wait->step, 8);
  put(bytes, &wait->place, 8);
  put(bytes, &age_ms, 8);
  put(bytes, &wait->driver, 4);
  put(bytes, &kind, 1);
  put(bytes, &holders, 1);
  put(bytes, &size, 2);
  put(bytes, wait->holders, holders * sizeof *wait->holders);
  put(bytes, wait->what, size);
}

static bool get_wait(struct bytes *bytes, uint64_t now_ms, struct stall_wait *wait) {
  uint64_t age_ms;
  uint8_t kind, holders;
  uint16_t size;
  *wait = (struct stall_wait){0};
  get(bytes, &wait->step, 8);
  get(bytes, &wait->place, 8);
  get(bytes, &age_ms, 8);
  get(bytes, &wait->driver, 4);
  get(bytes, &kind, 1);
  get(bytes, &holders, 1);
  get(bytes, &size, 2);
  if (bytes->is_short || kind > STALL_CALL || holders > STALL_HOLDERS || size >= STALL_TEXT)
    return false;
  wait->kind = (enum stall_kind)kind;
  wait->holder_count = holders;
  wait->since_ms = age_ms < now_ms ? now_ms - age_ms : 0;
  get(bytes, wait->holders, holders * sizeof *wait->holders);
  get(bytes, wait->what, size);
  for (char *at = wait->what; *at; at++)
    if ((unsigned char)*at < ' ')
      *at = ' ';
  return !bytes->is_short;
}

status stall_hear(struct stall *stall, uint64_t now_ms, uint32_t from, const void *data, size_t size) {
  struct bytes bytes = {(unsigned char *)(uintptr_t)data, 0, size, false};
  struct list list = {.heard_ms = now_ms};
  uint8_t count;
  get(&bytes, &count, 1);
  if (bytes.is_short || count > STALL_WAITS || from >= stall->task_count || from == stall->self)
    return fail(INVALID_ARGUMENT, "not what a task waits for");
  for (; list.count < count; list.count++)
    if (!get_wait(&bytes, now_ms, &list.waits[list.count]))
      return fail(INVALID_ARGUMENT, "not what a task waits for");
  if (bytes.used != size)
    return fail(INVALID_ARGUMENT, "not what a task waits for");
  if (!stall->others[from])
    stall->others[from] = malloc(sizeof list);
  if (stall->others[from])
    *stall->others[from] = list;
  return OK;
}

static void forget_old(struct stall *stall, uint64_t now_ms) {
  for (uint32_t i = 0; i < stall->task_count; i++)
    if (stall->others[i] && now_ms - stall->others[i]->heard_ms > HEARD_MS)
      stall->others[i]->count = 0;
}

size_t stall_tell(struct stall *stall, uint64_t now_ms, void *data) {
  struct bytes bytes = {data, 1, STALL_MESSAGE_BYTES, false};
  uint64_t hash = 0;
  uint8_t count = 0;
  forget_old(stall, now_ms);
  for (uint32_t i = 0; i < stall->own.count; i++) {
    const struct stall_wait *wait = &stall->own.waits[i];
    if (now_ms - wait->since_ms < STALL_TELL_MS)
      continue;
    hash = (hash ^ hash_text(wait->what) ^ wait->step ^ wait->place) * UINT64_C(0x9e3779b97f4a7c15);
    put_wait(&bytes, wait, now_ms);
    count++;
  }
  hash = count ? hash | 1 : 0;
  bool is_due = hash != stall->told || (count && now_ms - stall->told_ms >= TELL_AGAIN_MS);
  if (!is_due || bytes.is_short)
    return 0;
  stall->told = hash;
  stall->told_ms = now_ms;
  *(unsigned char *)data = count;
  return bytes.used;
}
