/* task.h: a running task: its program, its variables, and the execution of entries.
 *
 * A step is one run of an entry. The task that starts it drives it: it checks the feeds, tells the other tasks that have
 * a part in the entry, runs its own parts, and collects the fetches. A step driven elsewhere runs here on a job of the
 * crew when the exchange says so. Threads: every function may be called from any thread unless it says otherwise.
 */
#ifndef TFC_RUNTIME_STEP_TASK_H
#define TFC_RUNTIME_STEP_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/program/program.h"
#include "runtime/step/exchange.h"

struct partial;
struct step_stats;
struct task;

/* Loads a program: checks its references, makes its variables (with their initial values), starts the pool.
 * threads: of the pool, with the calling one; 0: one for each core. Program and kernels are kept by reference. */
status task_create(const struct program *program, const struct kernel_code *kernels, int threads, struct task **out);
/* No step may be running. Accepts NULL. */
void task_destroy(struct task *task);

/* How the other tasks are reached; needed before an entry with other tasks is run. Kept by reference. */
void task_set_exchange(struct task *task, const struct exchange *exchange);
/* How a part that was started from elsewhere makes sure that the tasks it talks to are connected: what is sent to one that is
 * not is lost. Before any step; NULL (as at first): they are. */
void task_set_peer_wait(struct task *task, status (*wait)(void *self, const uint32_t *tasks, uint32_t count), void *self);
/* What the exchange calls. */
struct exchange_sink task_sink(struct task *task);

const struct program *task_program(const struct task *task);
/* "/job:worker/task:0", valid as long as the task. */
const char *task_name(const struct task *task);
/* PROGRAM_NONE when there is no entry of that name. */
uint32_t task_find_entry(const struct task *task, const char *name);

/* What is asked of a run beside its values. */
struct run_request {
  const atomic_bool *gone;  /* when it becomes true and somebody calls task_poll_clients, the step ends with CANCELLED; or NULL */
  struct partial *partial;  /* not NULL: the feeds come through it, and the fetches go there (partial.h) */
  struct step_stats *stats; /* where each instruction is recorded (step_stats.h); or NULL */
  bool reports_memory;      /* out of memory: the error names the largest tensors */
  uint32_t command;         /* of a driver that counts its steps (ledger.h): */
  uint64_t serial;          /* applied once, however often it is run; 0: it has no number */
  const uint32_t *also;     /* tasks that count it though they have no part in the entry */
  uint32_t also_count;
  bool is_once; /* `init` of the job, or a replica's `local_init`: a task that has run one of them runs none again */
};
/* Runs one step as its driver and waits for it. feeds: one tensor for each feed of the entry, in its order (kept only during the call);
 * fetches: room for one tensor for each fetch; the caller owns a reference of each. On failure no fetch is set. Both are NULL in a partial
 * run, which is UNIMPLEMENTED for some entries. request: NULL: nothing. INVALID_ARGUMENT: a feed is NULL or does not fit (named);
 * FAILED_PRECONDITION: not driven from this task; CANCELLED: task_stop, or the client has gone; UNAVAILABLE: a peer was lost; else what the
 * step's instructions report. */
status task_run(struct task *task, uint32_t entry, struct tensor *const *feeds, struct tensor **fetches, const struct run_request *request);
/* What the steps of the client who waits with this `gone` are at ("/job:worker/task:0 is in QueueDequeueV2 'q'"), of all steps when it
 * is NULL; "" when nothing runs. Any thread. */
void task_explain(struct task *task, const atomic_bool *gone, char *out, size_t size);
/* Ends the steps whose clients have gone: call it now and then while clients are served. */
void task_poll_clients(struct task *task);

/* Checks one feed of an entry: dtype, rank and constant dimensions. INVALID_ARGUMENT names it. */
status task_check_feed(const struct task *task, uint32_t entry, uint32_t feed, const struct tensor *tensor);
/* The same of rank and constant dimensions alone, whatever the variant; the text has the shape that was declared. */
status task_check_feed_shape(const struct task *task, const struct program_port *port, const struct shape *shape);

/* Every instruction is recorded there from now on. Before any step. */
struct trace;
void task_set_trace(struct task *task, struct trace *trace);

/* What is told after each step that changed state here: the end of the step waits for it. Before any step. */
void task_watch_steps(struct task *task, void (*on_step)(void *self), void *self);

/* What is told, on the exchange's thread, when a peer was lost or has come. Before any step. */
void task_watch_peers(struct task *task, void (*on_peers)(void *self), void *self);

/* A task, this one or another, begins no more steps: who waits for it in a collective here is told so. */
void task_note_finished(struct task *task, uint32_t finished);

/* Forgets the variables and resources of these containers, one in a line ("localhost" is the default one): as they were when the task was
 * started. Here only; task_reset_all: on all tasks that are connected. */
void task_reset(struct task *task, const char *containers);
void task_reset_all(struct task *task, const char *containers);

/* Whether some task that meets others in rounds has. */
bool task_somebody_finished(struct task *task);
/* Variables were put back to an earlier moment, on all tasks that hold some: nothing counts that was given to rounds. */
void task_reset_rounds(struct task *task);

/* Queues of this task that are closed and have no shared name are made anew by whoever uses them next: with TensorFlow they end with the
 * session that closed them. */
void task_forget_closed_queues(struct task *task);

/* This task is about to stop since it cannot go on: drivers whose steps run here hear why. Once, before task_close. */
void task_give_up(struct task *task, const char *why);
/* No step of its own begins any more (CANCELLED), and those that run may come to their end, for at most wait_ms. */
void task_wind_up(struct task *task, uint32_t wait_ms);
/* Makes running and later steps end with CANCELLED. */
void task_stop(struct task *task);
/* The same, and waits until no step of another driver runs here: then the exchange is not called any more. */
void task_close(struct task *task);

#endif
