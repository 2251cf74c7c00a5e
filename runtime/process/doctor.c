/* doctor.c: once a second: own waits, the others' state, a line if one is due, what the others are to be told, the page. */
#include "runtime/process/doctor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "runtime/cluster/cluster.h"
#include "runtime/cluster/look.h"
#include "runtime/net/loop.h"
#include "runtime/process/page.h"
#include "runtime/program/monotonic.h"
#include "runtime/step/commit.h"
#include "runtime/step/stall.h"
#include "runtime/step/task.h"
#include "runtime/step/waits.h"

#define TICK_MS 1000

struct doctor {
  struct task *task;
  const struct program *program;
  struct cluster *cluster; /* or NULL */
  const struct progress *progress;
  char name[64];
  char (*names)[64]; /* of all tasks */
  const char **name_list;
  uint32_t task_count;
  pthread_t thread;
  pthread_mutex_t lock; /* all below; taken before the cluster's */
  struct page_facts facts;
  char text[PAGE_BYTES];
  struct peer_look *looks;
  pthread_cond_t changed;
  bool is_ending;
  struct stall *stall;
  enum doctor_stage stage;
  const uint32_t *awaited;
  uint32_t awaited_count;
  char checkpoint[256];
};

static const char *const stages[] = {
  [STAGE_STARTS] = "starts",
  [STAGE_MEETS] = "waits for tasks to connect",
  [STAGE_AWAITS_CHIEF] = "waits for the chief to initialise",
  [STAGE_INITIALISES] = "initialises",
  [STAGE_ASKS_HISTORY] = "asks what the job goes on from",
  [STAGE_ASKS_COURSE] = "asks where it goes on",
  [STAGE_COPIES] = "comes to the state of the other replicas",
  [STAGE_RUNS] = "runs its phases",
  [STAGE_HAS_FINISHED] = "has finished and waits for the others",
  [STAGE_SERVES] = "serves",
  [STAGE_LEAVES] = "leaves",
};

/* Seconds of the local day. */
static uint32_t clock_s(void) {
  struct timespec now;
  struct tm local;
  clock_gettime(CLOCK_REALTIME, &now);
  if (!localtime_r(&now.tv_sec, &local))
    return 0;
  return (uint32_t)(local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec);
}

/* ---- what is waited for ---- */

static bool is_at_work(const struct doctor *doctor, uint32_t task) {
  const struct peer_look *look = &doctor->looks[task];
  if (look->is_self)
    return doctor->stage == STAGE_RUNS;
  return look->has_phases && !look->is_finished && (look->is_up || look->was_up);
}

static void add_holder(struct stall_wait *wait, uint32_t task) {
  if (wait->holder_count < STALL_HOLDERS)
    wait->holders[wait->holder_count++] = task;
}

/* Who could fill a queue that nobody has filled yet: whoever else runs steps. */
static void add_likely_holders(const struct doctor *doctor, struct stall_wait *waits, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (waits[i].kind == STALL_RESOURCE && waits[i].holder_count == 0)
      for (uint32_t task = 0; task < doctor->task_count; task++)
        if (task != waits[i].driver && is_at_work(doctor, task))
          add_holder(&waits[i], task);
}

/* Who may keep a task waiting at this stage. */
static bool may_be_awaited(const struct doctor *doctor, uint32_t task) {
  const struct program_task *other = program_task(doctor->program, task);
  bool is_listed = false;
  for (uint32_t i = 0; i < doctor->awaited_count && !is_listed; i++)
    is_listed = doctor->awaited[i] == task;
  switch (doctor->stage) {
  case STAGE_MEETS:
  case STAGE_AWAITS_CHIEF: return is_listed;
  case STAGE_ASKS_HISTORY: return (other->flags & PROGRAM_TASK_HOLDS) || task == cluster_identity(doctor->cluster).coordinator;
  case STAGE_ASKS_COURSE: return other->flags & PROGRAM_TASK_HOLDS;
  case STAGE_COPIES:
    return strcmp(program_text(doctor->program, other->job), program_text(doctor->program, doctor->program->replicated_job)) == 0;
  case STAGE_HAS_FINISHED: return is_at_work(doctor, task);
  case STAGE_SERVES:
  case STAGE_STARTS:
  case STAGE_INITIALISES:
  case STAGE_RUNS:
  case STAGE_LEAVES: break;
  }
  return false;
}

/* Which of them the own thread waits for: who is not there, before all others. */
static bool is_awaited(const struct doctor *doctor, uint32_t task, bool is_any_missing) {
  const struct peer_look *look = &doctor->looks[task];
  if (doctor->stage == STAGE_SERVES)
    return look->was_up && !look->is_up && look->has_phases && !look->is_finished;
  return may_be_awaited(doctor, task) && (!look->is_up || (!is_any_missing && doctor->stage != STAGE_MEETS));
}

static const char *waits_until(enum doctor_stage stage) {
  return stage == STAGE_MEETS        ? "waits for tasks to connect"
       : stage == STAGE_AWAITS_CHIEF ? "waits for the chief to initialise"
       : stage == STAGE_SERVES       ? "waits for a lost task to come back"
       : stage == STAGE_ASKS_HISTORY ? "waits to be told what the job goes on from"
       : stage == STAGE_ASKS_COURSE  ? "waits to be told which of its steps are applied"
       : stage == STAGE_COPIES       ? "waits until all replicas have one state"
                                     : "has finished and waits for tasks that are at work";
}

/* Of the own thread, outside of steps. Under the lock. */
static uint32_t stage_wait(const struct doctor *doctor, struct stall_wait *out) {
  if (!doctor->cluster)
    return 0;
  *out = (struct stall_wait){.place = (uint64_t)doctor->stage, .driver = doctor->program->task, .kind = STALL_PEER};
  bool is_any_missing = false;
  for (uint32_t task = 0; task < doctor->task_count; task++)
    is_any_missing = is_any_missing || (!doctor->looks[task].is_self && !doctor->looks[task].is_up && may_be_awaited(doctor, task));
  for (uint32_t task = 0; task < doctor->task_count; task++)
    if (!doctor->looks[task].is_self && is_awaited(doctor, task, is_any_missing))
      add_holder(out, task);
  snprintf(out->what, sizeof out->what, "%s", waits_until(doctor->stage));
  return out->holder_count > 0;
}

/* Under the lock. */
static void see(struct doctor *doctor, uint64_t now_ms, struct stall_wait *waits, uint32_t count) {
  for (uint32_t i = 0; i < doctor->task_count && doctor->cluster; i++)
    cluster_look(doctor->cluster, i, &doctor->looks[i]);
  add_likely_holders(doctor, waits, count);
  if (count < STALL_WAITS)
    count += stage_wait(doctor, &waits[count]);
  stall_see(doctor->stall, now_ms, waits, count);
  for (uint32_t i = 0; i < doctor->task_count; i++) {
    const struct peer_look *look = &doctor->looks[i];
    char state[STALL_TEXT] = "";
    if (look->silent_ms) /* without a number: the answer stays the same */
      snprintf(state, sizeof state, "has gone silent");
    else if (!look->is_self && !look->is_up)
      peer_look_text(look, state, sizeof state);
    stall_note(doctor->stall, i, state);
  }
}

/* ---- the page ---- */

static void add_peers(struct doctor *doctor, uint64_t now_ms) {
  struct page_facts *facts = &doctor->facts;
  for (uint32_t i = 0; i < doctor->task_count; i++) {
    const struct peer_look *look = &doctor->looks[i];
    if (look->is_self)
      continue;
    if (facts->peer_count == PAGE_PEERS) {
      facts->more_peers++;
      continue;
    }
    struct page_peer *peer = &facts->peers[facts->peer_count++];
    *peer = (struct page_peer){
      .name = look->name, .address = look->address, .since_s = look->changed_ms ? (now_ms - look->changed_ms) / 1000 : 0};
    peer_look_text(look, peer->state, sizeof peer->state);
  }
}

static void add_drivers(struct doctor *doctor) {
  struct page_facts *facts = &doctor->facts;
  struct ledger ledger = {0};
  if (commit_ledger(doctor->task, &ledger) != OK)
    return;
  for (uint32_t i = 0; i < ledger.count && facts->driver_count < PAGE_DRIVERS; i++) {
    const struct ledger_row *row = &ledger.rows[i];
    if (row->lane == 0 && row->driver < doctor->task_count)
      facts->drivers[facts->driver_count++] = (struct page_driver){doctor->names[row->driver], row->command, row->last};
  }
  ledger_deinit(&ledger);
}

/* Under the lock. */
static void set_pages(struct doctor *doctor, uint64_t now_ms, const char *waits) {
  const struct progress *progress = doctor->progress;
  doctor->facts = (struct page_facts){
    .task = doctor->name,
    .stage = stages[doctor->stage],
    .phase = progress->phase,
    .phases = progress->phases,
    .entry = progress->entry,
    .step = progress->step,
    .steps = progress->steps,
    .waits = waits,
    .checkpoint = doctor->checkpoint,
  };
  add_peers(doctor, now_ms);
  add_drivers(doctor);
  page_write_text(&doctor->facts, doctor->text);
  cluster_set_page(doctor->cluster, "/status", "text/plain", doctor->text);
  page_write_json(&doctor->facts, doctor->text);
  cluster_set_page(doctor->cluster, "/status.json", "application/json", doctor->text);
}

/* ---- once a second ---- */

static void tick(struct doctor *doctor) {
  struct stall_wait waits[STALL_WAITS];
  char line[2600] = "", now[2600] = "";
  unsigned char told[STALL_MESSAGE_BYTES];
  uint32_t count = task_waits(doctor->task, waits, STALL_WAITS);
  uint64_t now_ms = loop_now_ms();
  uint32_t clock = clock_s();
  pthread_mutex_lock(&doctor->lock);
  see(doctor, now_ms, waits, count);
  size_t told_size = stall_tell(doctor->stall, now_ms, told);
  bool is_due = stall_say(doctor->stall, now_ms, clock, line, sizeof line);
  stall_report(doctor->stall, now_ms, clock, TICK_MS, now, sizeof now);
  if (doctor->cluster)
    set_pages(doctor, now_ms, now);
  pthread_mutex_unlock(&doctor->lock);
  if (is_due)
    fprintf(stderr, "%s: %s\n", doctor->name, line);
  for (uint32_t i = 0; i < doctor->task_count && told_size && doctor->cluster; i++)
    if (i != doctor->program->task)
      (void)cluster_send_control(doctor->cluster, i, CONTROL_STATUS, told, told_size); /* who is not there hears it again later */
}

static void hear(void *self, uint32_t from, const void *data, size_t size) {
  struct doctor *doctor = self;
  pthread_mutex_lock(&doctor->lock);
  (void)stall_hear(doctor->stall, loop_now_ms(), from, data, size); /* not understood: not heard */
  pthread_mutex_unlock(&doctor->lock);
}

static void *doctor_main(void *self) {
  struct doctor *doctor = self;
  pthread_mutex_lock(&doctor->lock);
  while (!doctor->is_ending) {
    pthread_mutex_unlock(&doctor->lock);
    tick(doctor);
    pthread_mutex_lock(&doctor->lock);
    if (!doctor->is_ending)
      monotonic_wait(&doctor->changed, &doctor->lock, monotonic_ms() + TICK_MS);
  }
  pthread_mutex_unlock(&doctor->lock);
  return NULL;
}

void doctor_report(struct doctor *doctor) {
  struct stall_wait waits[STALL_WAITS];
  char line[2600] = "", steps[2048] = "", peers[1024] = "";
  if (!doctor)
    return;
  if (doctor->cluster)
    cluster_explain(doctor->cluster, peers, sizeof peers);
  uint32_t count = task_waits(doctor->task, waits, STALL_WAITS);
  task_explain(doctor->task, NULL, steps, sizeof steps);
  pthread_mutex_lock(&doctor->lock);
  uint64_t now_ms = loop_now_ms();
  see(doctor, now_ms, waits, count);
  stall_report(doctor->stall, now_ms, clock_s(), 0, line, sizeof line);
  const char *stage = stages[doctor->stage];
  pthread_mutex_unlock(&doctor->lock);
  const struct progress *progress = doctor->progress;
  char phase[256] = "";
  if (progress->phase)
    snprintf(phase, sizeof phase, ", phase %u of %u: %.100s, step %lld of %lld", progress->phase, progress->phases, progress->entry,
             (long long)progress->step, (long long)progress->steps);
  fprintf(stderr, "%s: %s; %s%s%s%s%s%s\n", task_name(doctor->task), *steps ? steps : "no step runs", stage, phase, *peers ? "; " : "",
          peers, *line ? "; " : "", line);
}

void doctor_enter(struct doctor *doctor, enum doctor_stage stage, const uint32_t *tasks, uint32_t count) {
  if (!doctor)
    return;
  pthread_mutex_lock(&doctor->lock);
  doctor->stage = stage;
  doctor->awaited = tasks;
  doctor->awaited_count = count;
  pthread_mutex_unlock(&doctor->lock);
}

void doctor_note_checkpoint(struct doctor *doctor, const char *text) {
  if (!doctor)
    return;
  pthread_mutex_lock(&doctor->lock);
  snprintf(doctor->checkpoint, sizeof doctor->checkpoint, "%s", text);
  pthread_mutex_unlock(&doctor->lock);
}

/* ---- life ---- */

static status prepare(struct doctor *doctor) {
  const struct program *program = doctor->program;
  doctor->task_count = (uint32_t)program->tables[PROGRAM_TASKS].count;
  doctor->names = calloc((size_t)doctor->task_count + 1, sizeof *doctor->names);
  doctor->name_list = calloc((size_t)doctor->task_count + 1, sizeof *doctor->name_list);
  doctor->looks = calloc((size_t)doctor->task_count + 1, sizeof *doctor->looks);
  if (!doctor->names || !doctor->name_list || !doctor->looks)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < doctor->task_count; i++) {
    const struct program_task *task = program_task(program, i);
    snprintf(doctor->names[i], sizeof doctor->names[i], "%.48s_%u", program_text(program, task->job), task->index);
    doctor->name_list[i] = doctor->names[i];
    doctor->looks[i] = (struct peer_look){.name = doctor->names[i], .address = "", .is_self = i == program->task};
  }
  memcpy(doctor->name, doctor->names[program->task], sizeof doctor->name);
  return stall_create(program->task, doctor->task_count, doctor->name_list, &doctor->stall);
}

static void doctor_free(struct doctor *doctor) {
  stall_destroy(doctor->stall);
  pthread_cond_destroy(&doctor->changed);
  pthread_mutex_destroy(&doctor->lock);
  free(doctor->names);
  free(doctor->name_list);
  free(doctor->looks);
  free(doctor);
}

status doctor_create(struct task *task, struct cluster *cluster, const struct progress *progress, struct doctor **out) {
  struct doctor *doctor = calloc(1, sizeof *doctor);
  if (!doctor)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  doctor->task = task;
  doctor->program = task_program(task);
  doctor->cluster = cluster;
  doctor->progress = progress;
  pthread_mutex_init(&doctor->lock, NULL);
  monotonic_cond_init(&doctor->changed);
  status result = prepare(doctor);
  if (result == OK && cluster)
    cluster_on_control(cluster, CONTROL_STATUS, hear, doctor);
  if (result == OK && pthread_create(&doctor->thread, NULL, doctor_main, doctor) != 0)
    result = fail(RESOURCE_EXHAUSTED, "no thread");
  if (result != OK) {
    doctor_free(doctor);
    return result;
  }
  *out = doctor;
  return OK;
}

void doctor_stop(struct doctor *doctor) {
  if (!doctor)
    return;
  pthread_mutex_lock(&doctor->lock);
  doctor->is_ending = true;
  pthread_cond_signal(&doctor->changed);
  pthread_mutex_unlock(&doctor->lock);
  pthread_join(doctor->thread, NULL);
}

void doctor_destroy(struct doctor *doctor) {
  if (doctor)
    doctor_free(doctor);
}
