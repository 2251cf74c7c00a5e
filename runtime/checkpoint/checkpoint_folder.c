/* checkpoint_folder.c: a checkpoint's files come first, then the state file that names it, then older ones go: whoever
 * is killed in between finds one that is complete. */
#include "runtime/checkpoint/checkpoint_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/synced_file.h"

#define STATE_BYTES_MAX ((size_t)1 << 20)
#define OUR_NAME "model.ckpt-"
#define LOCK_WAIT_MS 2000 /* for one that is being killed */

/* ---- names ---- */

/* "model.ckpt-12", "model.ckpt-12-2": written here. */
static bool is_ours(const char *name) {
  if (strncmp(name, OUR_NAME, strlen(OUR_NAME)) != 0)
    return false;
  const char *at = name + strlen(OUR_NAME);
  size_t digits = strspn(at, "0123456789");
  at += digits;
  if (*at == '-')
    at += 1 + strspn(at + 1, "0123456789");
  return digits > 0 && *at == 0;
}

static uint32_t find_name(const struct checkpoint_folder *folder, const char *name) {
  uint32_t i = 0;
  while (i < folder->names.count && strcmp(folder->names.items[i], name) != 0)
    i++;
  return i;
}

static void drop_name(struct checkpoint_folder *folder, uint32_t i) {
  free(folder->names.items[i]);
  folder->names.count--;
  memmove(folder->names.items + i, folder->names.items + i + 1, (folder->names.count - i) * sizeof *folder->names.items);
}

void checkpoint_folder_prefix(const struct checkpoint_folder *folder, const char *name, char *out, size_t size) {
  if (*name == '/')
    snprintf(out, size, "%s", name);
  else
    snprintf(out, size, "%.*s/%s", CHECKPOINT_PATH_MAX - 1, folder->path, name);
}

bool checkpoint_folder_latest(const struct checkpoint_folder *folder, char *out, size_t size) {
  if (folder->has_latest)
    checkpoint_folder_prefix(folder, folder->names.items[folder->names.count - 1], out, size);
  return folder->has_latest;
}

/* ---- the state file: a protobuf message as text ---- */

static const char *skip_space(const char *at) {
  for (;; at++) {
    if (*at == '#')
      at += strcspn(at, "\n");
    if (!*at || !(isspace((unsigned char)*at) || *at == ';' || *at == ','))
      return at;
  }
}

/* A quoted string behind `at`, its end; NULL: none. Escapes are those that the writer of such names uses. */
static const char *take_string(const char *at, char *out, size_t size) {
  char quote = *at;
  size_t used = 0;
  if (quote != '"' && quote != '\'')
    return NULL;
  for (at++; *at && *at != quote; at++) {
    char c = *at;
    if (c == '\\' && at[1] >= '0' && at[1] <= '7') {
      int value = 0, digits = 0;
      for (; digits < 3 && at[1] >= '0' && at[1] <= '7'; digits++, at++)
        value = value * 8 + at[1] - '0';
      c = (char)value;
    } else if (c == '\\' && at[1]) {
      at++;
      c = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
    }
    if (used + 1 < size)
      out[used++] = c;
  }
  out[used] = 0;
  return *at == quote ? at + 1 : NULL;
}

/* Takes `key: value` fields one after the other; those that are no strings are passed over. False at the end, or where
 * it is no such text. */
static bool next_field(const char **at, char *key, size_t key_size, char *value, size_t value_size) {
  const char *from = skip_space(*at);
  size_t length = 0;
  while (isalnum((unsigned char)from[length]) || from[length] == '_')
    length++;
  if (length == 0)
    return false;
  snprintf(key, key_size, "%.*s", (int)length, from);
  from = skip_space(from + length);
  if (*from != ':')
    return false;
  from = skip_space(from + 1);
  const char *end = take_string(from, value, value_size);
  if (!end) {
    *value = 0;
    end = from + strcspn(from, " \t\r\n");
    if (end == from)
      return false;
  }
  *at = end;
  return true;
}

static char *read_text(const char *path) {
  FILE *file = fopen(path, "re");
  char *text = file ? calloc(1, STATE_BYTES_MAX + 1) : NULL;
  size_t size = text ? fread(text, 1, STATE_BYTES_MAX, file) : 0;
  if (text)
    text[size] = 0;
  if (file)
    fclose(file);
  return text;
}

/* Fills names, the newest last. */
static status read_state(struct checkpoint_folder *folder) {
  char path[CHECKPOINT_PATH_MAX + 16], key[64], value[CHECKPOINT_PATH_MAX], latest[CHECKPOINT_PATH_MAX] = "";
  snprintf(path, sizeof path, "%s/checkpoint", folder->path);
  char *text = read_text(path), *copy;
  status result = OK;
  for (const char *at = text; at && result == OK && next_field(&at, key, sizeof key, value, sizeof value);) {
    if (strcmp(key, "model_checkpoint_path") == 0)
      snprintf(latest, sizeof latest, "%s", value);
    bool is_listed = strcmp(key, "all_model_checkpoint_paths") == 0 && *value && find_name(folder, value) == folder->names.count;
    if (is_listed && !(copy = strdup(value)))
      result = fail(RESOURCE_EXHAUSTED, "no memory");
    else if (is_listed)
      vec_push(&folder->names, copy);
  }
  free(text);
  if (result != OK || !*latest)
    return result;
  uint32_t i = find_name(folder, latest);
  if (i < folder->names.count)
    drop_name(folder, i);
  if (!(copy = strdup(latest)))
    return fail(RESOURCE_EXHAUSTED, "no memory");
  vec_push(&folder->names, copy);
  folder->has_latest = true;
  return OK;
}

static status put_line(struct synced_file *file, const char *key, const char *name) {
  char line[2 * CHECKPOINT_PATH_MAX + 64];
  size_t used = (size_t)snprintf(line, sizeof line, "%s: \"", key);
  for (const char *at = name; *at && used + 4 < sizeof line; at++) {
    if (*at == '"' || *at == '\\' || *at == '\n')
      line[used++] = '\\';
    line[used++] = *at == '\n' ? 'n' : *at;
  }
  used += (size_t)snprintf(line + used, sizeof line - used, "\"\n");
  return synced_file_put(file, line, used);
}

static status put_state(const struct checkpoint_folder *folder, uint32_t first, struct synced_file *file) {
  TRY(put_line(file, "model_checkpoint_path", folder->names.items[folder->names.count - 1]));
  for (uint32_t i = first; i < folder->names.count; i++)
    TRY(put_line(file, "all_model_checkpoint_paths", folder->names.items[i]));
  return OK;
}

/* Names those from `first` on. */
static status write_state(const struct checkpoint_folder *folder, uint32_t first) {
  char path[CHECKPOINT_PATH_MAX + 16], made[CHECKPOINT_PATH_MAX + 24];
  snprintf(path, sizeof path, "%s/checkpoint", folder->path);
  snprintf(made, sizeof made, "%s.tmp", path);
  if (folder->names.count == 0)
    return unlink(path) == 0 || errno == ENOENT ? synced_folder_of(path) : fail(DATA_LOSS, "'%s': %s", path, strerror(errno));
  struct synced_file *file;
  TRY(synced_file_create(made, &file));
  status result = put_state(folder, first, file);
  if (result != OK) {
    synced_file_destroy(file);
    return result;
  }
  TRY(synced_file_close(file));
  if (rename(made, path) != 0)
    return fail(DATA_LOSS, "'%s': %s", path, strerror(errno));
  return synced_folder_of(path);
}

status checkpoint_folder_peek(const char *path, char *out, size_t size) {
  struct checkpoint_folder folder = {.lock = -1};
  snprintf(folder.path, sizeof folder.path, "%s", path);
  status result = read_state(&folder);
  if (result == OK && !checkpoint_folder_latest(&folder, out, size))
    result = fail(NOT_FOUND, "%s has no file `checkpoint` that names one", path);
  checkpoint_folder_close(&folder);
  return result;
}

/* ---- files ---- */

/* The index goes first: what is left of a checkpoint without one is none. */
static void delete_files(const struct checkpoint_folder *folder, const char *name) {
  static const char *const endings[] = {".index", ".data-00000-of-00001", ".meta"};
  char prefix[CHECKPOINT_PATH_MAX + CHECKPOINT_NAME_MAX], path[CHECKPOINT_PATH_MAX + CHECKPOINT_NAME_MAX + 32];
  checkpoint_folder_prefix(folder, name, prefix, sizeof prefix);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    snprintf(path, sizeof path, "%s%s", prefix, endings[i]);
    unlink(path);
  }
}

status checkpoint_folder_begin(struct checkpoint_folder *folder, int64_t number, char *name, size_t size) {
  for (int turn = 1; turn < 1000000; turn++) {
    int length = turn == 1 ? snprintf(name, size, OUR_NAME "%lld", (long long)number)
                           : snprintf(name, size, OUR_NAME "%lld-%d", (long long)number, turn);
    if ((size_t)length >= size)
      break;
    if (find_name(folder, name) < folder->names.count)
      continue;
    delete_files(folder, name);
    return OK;
  }
  return fail(RESOURCE_EXHAUSTED, "%s: too many checkpoints of number %lld", folder->path, (long long)number);
}

status checkpoint_folder_add(struct checkpoint_folder *folder, const char *name) {
  char *copy = strdup(name);
  if (!copy)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  uint32_t before = find_name(folder, name);
  if (before < folder->names.count)
    drop_name(folder, before);
  vec_push(&folder->names, copy);
  folder->has_latest = true;
  uint32_t surplus = (int64_t)folder->names.count > folder->keep ? (uint32_t)((int64_t)folder->names.count - folder->keep) : 0;
  TRY(write_state(folder, surplus)); /* else its name stays taken, and is written with the next one's */
  for (; surplus > 0; surplus--) {   /* nobody names them any more */
    if (is_ours(folder->names.items[0]))
      delete_files(folder, folder->names.items[0]);
    drop_name(folder, 0);
  }
  return OK;
}

status checkpoint_folder_remove(struct checkpoint_folder *folder, const char *name) {
  uint32_t i = find_name(folder, name);
  if (i < folder->names.count) {
    bool is_latest = i + 1 == folder->names.count;
    drop_name(folder, i);
    folder->has_latest = folder->has_latest && (!is_latest || folder->names.count > 0);
    TRY(write_state(folder, 0));
  }
  if (is_ours(name))
    delete_files(folder, name);
  return OK;
}

/* ---- opening ---- */

/* What tasks that were killed while saving left behind: "...tempstatePID", where no such process is. */
static void remove_leftovers(const struct checkpoint_folder *folder) {
  DIR *dir = opendir(folder->path);
  for (const struct dirent *entry; dir && (entry = readdir(dir));) {
    const char *mark = strstr(entry->d_name, ".tempstate");
    char *end = NULL;
    long process = mark ? strtol(mark + strlen(".tempstate"), &end, 10) : 0;
    bool is_dead = process > 0 && *end == 0 && (process == (long)getpid() || (kill((pid_t)process, 0) != 0 && errno == ESRCH));
    if (is_dead && strncmp(entry->d_name, OUR_NAME, strlen(OUR_NAME)) == 0)
      unlinkat(dirfd(dir), entry->d_name, 0);
  }
  if (dir)
    closedir(dir);
}

/* That nothing can be saved is known before anything is computed. */
static status check_writable(const struct checkpoint_folder *folder) {
  char path[CHECKPOINT_PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/" OUR_NAME "0.tempstate%d", folder->path, (int)getpid());
  folders_make_above(path);
  FILE *file = fopen(path, "we");
  bool good = file && fputc('0', file) != EOF;
  int error = errno;
  if (file && fclose(file) != 0 && good) {
    good = false;
    error = errno;
  }
  if (file)
    unlink(path);
  return good ? OK : fail(DATA_LOSS, "--checkpoint-dir %s cannot be written: %s", folder->path, strerror(error));
}

/* Two that save into one folder would delete each other's files. */
static status lock_folder(struct checkpoint_folder *folder) {
  folder->lock = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int waited_ms = 0; folder->lock >= 0 && flock(folder->lock, LOCK_EX | LOCK_NB) != 0; waited_ms += 20) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return OK; /* a file system without locks */
    if (waited_ms >= LOCK_WAIT_MS)
      return fail(FAILED_PRECONDITION, "--checkpoint-dir %s: another process keeps its variables there", folder->path);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  }
  return OK;
}

status checkpoint_folder_open(struct checkpoint_folder *folder, const char *path, int64_t keep) {
  *folder = (struct checkpoint_folder){.keep = keep, .lock = -1};
  if (snprintf(folder->path, sizeof folder->path, "%s", path) >= CHECKPOINT_PATH_MAX - CHECKPOINT_NAME_MAX)
    return fail(INVALID_ARGUMENT, "--checkpoint-dir: the path is too long");
  TRY(check_writable(folder));
  TRY(lock_folder(folder));
  remove_leftovers(folder);
  return read_state(folder);
}

void checkpoint_folder_close(struct checkpoint_folder *folder) {
  for (uint32_t i = 0; i < folder->names.count; i++)
    free(folder->names.items[i]);
  vec_free(&folder->names);
  if (folder->lock >= 0)
    close(folder->lock);
  folder->lock = -1;
}
