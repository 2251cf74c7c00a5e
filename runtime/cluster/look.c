/* look.c: a peer's state, copied under the lock. */
#include "runtime/cluster/look.h"

#include <stdio.h>
#include <string.h>

#include "runtime/cluster/cluster_state.h"

void cluster_look(struct cluster *cluster, uint32_t task, struct peer_look *out) {
  *out = (struct peer_look){.name = "?", .address = "?"};
  if (task >= cluster->task_count)
    return;
  pthread_mutex_lock(&cluster->lock);
  const struct peer *peer = &cluster->peers[task];
  *out = (struct peer_look){
    .name = peer->name,
    .address = peer->address,
    .is_self = task == cluster->task,
    .is_up = peer->channel != NULL,
    .was_up = peer->was_up,
    .has_phases = peer->has_phases,
    .is_finished = peer->is_finished,
    .has_left = peer->said_bye && !peer->channel,
    .is_refused = peer->is_refused,
    .is_cut = peer->session.is_alive && !peer->channel,
    .changed_ms = peer->changed_ms,
  };
  uint64_t now_ms = loop_now_ms();
  if (out->is_up && peer->session.is_suspected && now_ms > peer->session.heard_ms)
    out->silent_ms = now_ms - peer->session.heard_ms;
  memcpy(out->reason, peer->reason, sizeof out->reason < sizeof peer->reason ? sizeof out->reason : sizeof peer->reason);
  out->reason[sizeof out->reason - 1] = 0;
  pthread_mutex_unlock(&cluster->lock);
}

void peer_look_text(const struct peer_look *look, char *out, size_t size) {
  if (look->silent_ms) {
    snprintf(out, size, "has been silent for %llu s", (unsigned long long)look->silent_ms / 1000);
    return;
  }
  const char *what = look->is_up                         ? "is connected"
                   : look->is_refused                    ? "has refused the connection"
                   : look->has_left && look->is_finished ? "has finished and left"
                   : look->has_left                      ? "has left"
                   : look->is_cut                        ? "was cut off"
                   : look->was_up                        ? "was lost"
                                                         : "has not come";
  bool says_why = !look->is_up && !look->has_left && look->reason[0];
  snprintf(out, size, "%s%s%s", what, says_why ? ": " : "", says_why ? look->reason : "");
}

void cluster_set_page(struct cluster *cluster, const char *path, const char *content_type, const char *text) {
  grpc_server_set_page(cluster->server, path, content_type, text);
}
