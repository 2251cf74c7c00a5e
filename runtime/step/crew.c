/* crew.c: idle threads wait on one condition; a job goes to one of them, or to a new thread. */
#include "runtime/step/crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include "runtime/step/pool.h"

struct job {
  struct job *next;
  void (*run)(void *);
  void *argument;
};
struct crew {
  pthread_mutex_t lock;
  pthread_cond_t work, quiet;
  struct job *first, **last;
  int idle, queued, threads;
  bool closing;
};

status crew_create(struct crew **out) {
  struct crew *crew = calloc(1, sizeof *crew);
  if (!crew)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->work, NULL);
  pthread_cond_init(&crew->quiet, NULL);
  crew->last = &crew->first;
  *out = crew;
  return OK;
}

static struct job *crew_next(struct crew *crew) {
  crew->idle++;
  while (!crew->first && !crew->closing)
    pthread_cond_wait(&crew->work, &crew->lock);
  crew->idle--;
  struct job *job = crew->first;
  if (job) {
    crew->queued--;
    crew->first = job->next;
    if (!crew->first)
      crew->last = &crew->first;
  }
  return job;
}

static void *crew_main(void *argument) {
  struct crew *crew = argument;
  float_mode_set();
  pthread_mutex_lock(&crew->lock);
  struct job *job;
  while ((job = crew_next(crew))) {
    pthread_mutex_unlock(&crew->lock);
    job->run(job->argument);
    free(job);
    pthread_mutex_lock(&crew->lock);
  }
  crew->threads--;
  pthread_cond_signal(&crew->quiet);
  pthread_mutex_unlock(&crew->lock);
  return NULL;
}

void crew_close(struct crew *crew) {
  pthread_mutex_lock(&crew->lock);
  crew->closing = true;
  pthread_cond_broadcast(&crew->work);
  while (crew->threads > 0)
    pthread_cond_wait(&crew->quiet, &crew->lock);
  pthread_mutex_unlock(&crew->lock);
}

void crew_destroy(struct crew *crew) {
  if (!crew)
    return;
  crew_close(crew);
  pthread_mutex_destroy(&crew->lock);
  pthread_cond_destroy(&crew->work);
  pthread_cond_destroy(&crew->quiet);
  free(crew);
}

static bool crew_grow(struct crew *crew) {
  pthread_t thread;
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  bool made = pthread_create(&thread, &detached, crew_main, crew) == 0;
  pthread_attr_destroy(&detached);
  crew->threads += made;
  return made;
}

status crew_run(struct crew *crew, void (*run)(void *), void *argument) {
  struct job *job = malloc(sizeof *job);
  if (!job)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  *job = (struct job){.run = run, .argument = argument};
  pthread_mutex_lock(&crew->lock);
  /* every queued job must have a thread of its own: one that runs may wait for the one that is queued */
  bool ready = !crew->closing && (crew->idle > crew->queued || crew_grow(crew));
  if (ready) {
    *crew->last = job;
    crew->last = &job->next;
    crew->queued++;
    pthread_cond_signal(&crew->work);
  }
  pthread_mutex_unlock(&crew->lock);
  if (ready)
    return OK;
  free(job);
  return fail(RESOURCE_EXHAUSTED, "no thread for a step");
}
