/* command_certs.c: tfc certs: what a cluster on --tls-cert, --tls-key and --tls-ca needs, for developing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/certificate.h"
#include "compiler/cluster.h"
#include "compiler/commands.h"

#define CLIENT "client"
#define CERT_DAYS 365

static status find_authority(struct arena *arena, const char *folder, struct authority **out) {
  const char *cert = arena_printf(arena, "%s/ca.crt", folder), *key = arena_printf(arena, "%s/ca.key", folder);
  if (access(cert, F_OK) == 0 && access(key, F_OK) == 0)
    return authority_read(cert, key, out);
  TRY(authority_create("tfc development CA", out));
  return authority_write(*out, cert, key);
}

/* The host of "host:port" or "[v6]:port"; NULL: a path, or a host that is called as a task is. */
static const char *host_of(struct arena *arena, const struct cluster *cluster, const char *address) {
  const char *colon = strrchr(address, ':');
  if (!colon || strncmp(address, "unix:", 5) == 0)
    return NULL;
  bool is_v6 = address[0] == '[' && colon[-1] == ']';
  const char *host = arena_strndup(arena, address + is_v6, (size_t)(colon - address) - 2 * is_v6);
  for (uint32_t i = 0; i < cluster->tasks.count; i++)
    if (strcmp(host, arena_printf(arena, "%s_%u", cluster->tasks.items[i].job, cluster->tasks.items[i].index)) == 0)
      return NULL;
  return strcmp(host, CLIENT) == 0 ? NULL : host;
}

static status issue(struct arena *arena, const struct authority *authority, const char *folder, const char *name, const char *host) {
  const struct certificate_request request = {.name = name, .host = host, .days = CERT_DAYS};
  return authority_issue(authority, &request, arena_printf(arena, "%s/%s.crt", folder, name),
                         arena_printf(arena, "%s/%s.key", folder, name));
}

static status issue_all(struct arena *arena, const struct cluster *cluster, const struct authority *authority, const char *folder) {
  for (uint32_t i = 0; i < cluster->tasks.count; i++) {
    const struct cluster_task *task = &cluster->tasks.items[i];
    const char *name = arena_printf(arena, "%s_%u", task->job, task->index);
    TRY(issue(arena, authority, folder, name, host_of(arena, cluster, task->address)));
  }
  return issue(arena, authority, folder, CLIENT, NULL);
}

status command_certs(const char *cluster_path, const char *folder) {
  struct arena arena;
  struct cluster cluster = {0};
  struct authority *authority = NULL;
  arena_init(&arena);
  status code = cluster_read(cluster_path, &arena, &cluster);
  if (code == OK && mkdir(folder, 0777) != 0 && errno != EEXIST)
    code = fail(DATA_LOSS, "%s cannot be made: %s", folder, strerror(errno));
  if (code == OK)
    code = find_authority(&arena, folder, &authority);
  if (code == OK)
    code = issue_all(&arena, &cluster, authority, folder);
  authority_destroy(authority);
  if (code == OK)
    printf("%s: ca.crt, and for %u tasks and clients a certificate (.crt) and a key (.key), good for %d days\n"
           "give each task  --tls-cert %s/{task}.crt --tls-key %s/{task}.key --tls-ca %s/ca.crt  (as it stands: it puts its name in)\n"
           "keep ca.key and the other tasks' keys off its machine\n",
           folder, cluster.tasks.count, CERT_DAYS, folder, folder, folder);
  arena_deinit(&arena);
  return code;
}
