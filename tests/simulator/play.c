/* play.c: a run: tasks are started, things go wrong, tasks are started again, until everybody has ended. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulator/disk.h"
#include "tests/simulator/fiber.h"
#include "tests/simulator/invariant.h"
#include "tests/simulator/memory.h"
#include "tests/simulator/net.h"
#include "tests/simulator/observe.h"
#include "tests/simulator/process.h"
#include "tests/simulator/run.h"

#define TURNS_MAX 3000000      /* of threads without an end: somebody is busy with nothing */
#define STOP_NS (10 * WORLD_S) /* who is told to stop ends in that time: a last checkpoint, who is cut off and the good-bye take 3 s each */

static struct run *playing;
extern char __executable_start[]; /* the linker's: what addr2line counts from */

const float *run_value(const struct run_task *task, const char *variable, int64_t *count) {
  const struct observed *found = task->process ? observe(task->process, variable) : NULL;
  *count = found ? found->count : 0;
  return found ? found->values : NULL;
}

/* ---- tasks ---- */

static struct machine *machine_of(const struct run_task *task) { return machine_get(task->machine); }

static void on_end(struct process *process);

static void start(struct run_task *task) {
  task->will_start = false;
  task->has_left = false;
  task->anew += task->is_leaving;
  if (task->starts++)
    run_redraw(playing->scenario, task);
  machine_resume(machine_of(task));
  world_say(task->built->name, "starts%s", task->starts > 1 ? " again" : "");
  task->process = process_start(task->built->name, machine_of(task), task->built->program, task->built->kernels, task->argv, on_end, task);
}

static void on_start_due(void *self, uint64_t starts) {
  struct run_task *task = self;
  if (task->will_start && task->starts == starts)
    start(task);
}

static void start_later(struct run_task *task, uint64_t delay_ns) {
  task->will_start = true;
  world_after(delay_ns, on_start_due, task, task->starts);
}

static void check_memory(const struct run_task *task) {
  size_t largest;
  void *caller = NULL;
  uint32_t lost = memory_lost(task->process, &largest, &caller);
  if (lost)
    run_fault(playing, "%s ends well and leaves %u blocks of memory, the largest of %zu bytes (asked for at %#zx)", task->built->name, lost,
              largest, (size_t)((char *)caller - __executable_start));
}

/* Who is told to stop waits for nobody who is away. */
static void check_stop(const struct process *process) {
  uint64_t took_ns = process->told_ns ? process->ended_ns - process->told_ns : 0;
  if (took_ns > STOP_NS)
    run_fault(playing, "%s was told to stop, and ends after %.3f s", process->name, (double)took_ns / 1e9);
}

static void on_end(struct process *process) {
  struct run_task *task = process->user;
  world_say(process->name, "has ended: %d", process->exit_code);
  if (process != task->process || process->exit_code == 128 + SIGKILL)
    return;
  check_stop(process);
  task->has_left = true;
  task->exit_code = process->exit_code;
  if (task->exit_code == 0)
    check_memory(task);
}

static bool is_there(const struct run_task *task) { return task->process && !task->process->has_ended; }

static void note_done(struct run_task *task) {
  task->was_done = playing->scenario->is_done && playing->scenario->is_done(playing, task);
  task->is_leaving = task->process->is_leaving;
  task->was_leaving = task->was_leaving || task->is_leaving;
}

enum end_how {
  END_KILL,
  END_TEAR,  /* what it has said last does not arrive */
  END_POWER, /* what it has written last is not there */
};

static void end_by_force(struct run_task *task, enum end_how how) {
  if (!is_there(task))
    return;
  task->was_killed = true;
  note_done(task);
  if (how == END_TEAR)
    net_tear(task->machine);
  if (how == END_POWER)
    machine_of(task)->is_down = true; /* nobody is told */
  process_kill(task->process);
  if (how == END_POWER)
    machine_stop(machine_of(task));
}

/* ---- what goes wrong ---- */

static void on_pause_over(void *self, uint64_t number) {
  struct process *process = self;
  (void)number;
  process_pause(process, false);
}

static void on_slow_over(void *self, uint64_t number) {
  const struct mishap *m = self;
  (void)number;
  net_slow(m->a, m->b, 0);
}

static void on_full_over(void *self, uint64_t number) {
  const struct mishap *m = self;
  (void)number;
  disk_limit(machine_get(m->a)->disk, UINT64_MAX);
}

/* Whether anybody was there. */
static bool kill_all(struct run *run, const struct mishap *m) {
  bool any = false;
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++) {
    struct run_task *task = &run->tasks[i];
    if (!is_there(task))
      continue;
    run->begins_anew = run->begins_anew || invariants_have_ended();
    any = true;
    end_by_force(task, END_KILL);
    start_later(task, m->back_ns);
  }
  return any;
}

/* Whether it concerned anybody. */
static bool happen(struct run *run, struct mishap *m) {
  struct run_task *task = &run->tasks[m->a];
  uint64_t until = world_now() + m->back_ns;
  bool was_there = is_there(task);
  switch (m->kind) {
  case MISHAP_CUT: return net_cut(m->a, m->b, (enum net_cut)m->how, m->amount) || net_cut(m->b, m->a, (enum net_cut)m->how, m->amount);
  case MISHAP_STICK: return net_stick(m->a, m->b, world_now() + m->amount);
  case MISHAP_BLOCK: net_block(m->a, m->b, until); return true;
  case MISHAP_REFUSE: net_refuse(m->a, until); return true;
  case MISHAP_SLOW:
    net_slow(m->a, m->b, m->amount);
    world_after(m->back_ns, on_slow_over, m, 0);
    return true;
  case MISHAP_PAUSE:
    if (was_there) {
      process_pause(task->process, true);
      world_after(m->back_ns, on_pause_over, task->process, 0);
    }
    return was_there;
  case MISHAP_CLOCK: machine_of(task)->wall_offset_ns += m->how % 2 ? (int64_t)m->amount : -(int64_t)m->amount; return true;
  case MISHAP_FULL:
    disk_limit(machine_of(task)->disk, 0);
    world_after(m->back_ns, on_full_over, m, 0);
    return true;
  case MISHAP_MEMORY: machine_of(task)->copies_ns = until; return was_there;
  case MISHAP_KILL_ALL: return kill_all(run, m);
  case MISHAP_TERM:
    if (was_there) {
      task->was_killed = true;
      note_done(task);
      process_signal(task->process, SIGTERM);
    }
    return was_there;
  case MISHAP_TWIN:
    if (was_there && !run->twins[m->a].starts)
      start(&run->twins[m->a]);
    return was_there;
  default: break;
  }
  if (!was_there)
    return false;
  if (m->kind == MISHAP_LATE)
    net_stick(m->a, m->b, world_now() + m->amount);
  bool is_power = m->kind == MISHAP_POWER || m->kind == MISHAP_POWER_PS;
  end_by_force(task, is_power ? END_POWER : m->kind == MISHAP_TEAR ? END_TEAR : END_KILL);
  if (m->kind == MISHAP_WIPE) {
    disk_wipe(machine_of(task)->disk);
    task->was_wiped = true;
  }
  if (m->kind == MISHAP_LOSE)
    task->is_lost = true;
  else
    start_later(task, m->back_ns);
  return true;
}

static void on_mishap(void *self, uint64_t number) {
  struct mishap *m = self;
  char text[256];
  (void)number;
  mishap_text(m, text, sizeof text);
  m->has_happened = happen(playing, m);
  uint64_t over_ns = world_now() + m->back_ns;
  if (m->has_happened && over_ns > playing->last_mishap_ns)
    playing->last_mishap_ns = over_ns;
  world_say("--", "%s%s", text, m->has_happened ? "" : " (nobody is there)");
}

static void happen_due(struct run *run) {
  for (uint32_t i = 0; i < run->mishap_count; i++) {
    struct mishap *m = &run->mishaps[i];
    if (m->is_due || m->moment || run->options.without & 1u << i || world_turns() - run->first_turn < m->at_turn)
      continue;
    m->is_due = true;
    world_after(m->after_ns, on_mishap, m, 0);
  }
}

/* Whom it strikes: who is there, where the kind allows. */
static void aim(const struct run *run, struct mishap *m, uint32_t task) {
  uint32_t here = process_number(process_self());
  if (mishap_is_of_worker(m->kind) && !run->scenario->job->tasks[task].is_ps)
    m->a = task;
  else if (!mishap_is_of_worker(m->kind) && (!mishap_is_of_ps(m->kind) || run->scenario->job->tasks[here].is_ps))
    m->a = here;
  if (task != m->a)
    m->b = task;
  else if (m->a == m->b)
    m->b = (m->a + 1) % run->scenario->job->task_count;
}

void moment_came(enum moment moment, uint32_t task) {
  struct run *run = playing;
  bool any = false;
  for (uint32_t i = 0; i < run->mishap_count; i++) {
    struct mishap *m = &run->mishaps[i];
    if (m->moment != moment || m->is_due || run->options.without & 1u << i || task >= run->scenario->job->task_count)
      continue;
    if (--m->moment_count > 0)
      continue;
    m->moment_count = 0;
    m->is_due = any = true;
    aim(run, m, task);
    world_after(m->after_ns, on_mishap, m, 0);
  }
  if (any)
    fiber_give_way();
}

/* A task that was asked to leave is started again as one that was killed. */
static void restart_stopped(struct run *run) {
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++) {
    struct run_task *task = &run->tasks[i];
    if (task->has_left && task->exit_code == 128 + SIGTERM && !task->will_start)
      start_later(task, 100 * WORLD_MS);
  }
}

/* ---- the run ---- */

static bool all_have_ended(const struct run *run) {
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++)
    if (run->tasks[i].will_start || !(run->tasks[i].has_left || run->tasks[i].is_lost) || is_there(&run->twins[i]))
      return false;
  return true;
}

static void explain(const struct run *run) {
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++)
    if (is_there(&run->tasks[i]))
      fiber_explain(run->tasks[i].process);
}

/* One thing: what is due, or a thread's turn, or the next thing in time. False: nothing will ever happen again, or not in time. */
static bool move(struct run *run) {
  uint64_t limit = run->last_mishap_ns + (uint64_t)run->scenario->timeout_s * 4 * WORLD_S;
  if (world_advance(world_now()))
    return true;
  happen_due(run);
  if (fiber_run_one())
    return world_turns() - run->first_turn < TURNS_MAX;
  return world_advance(limit);
}

bool run_play(struct run *run) {
  playing = run;
  invariants_begin(run);
  run->first_turn = world_turns();
  run->last_mishap_ns = world_now();
  for (uint32_t i = 0; i < run->scenario->job->task_count; i++)
    start_later(&run->tasks[i], random_below(world_random(), run->scenario->spread_ns));
  while (!all_have_ended(run) && !run->report->has_failed) {
    invariants_look();
    if (run->scenario->watch)
      run->scenario->watch(run);
    if (!move(run)) {
      explain(run);
      return false;
    }
    restart_stopped(run);
  }
  return true;
}
