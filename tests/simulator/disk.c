/* disk.c: names and bytes, seen and synced. */
#include "tests/simulator/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulator/world.h"

#define PATH_BYTES 512
#define SECTOR 512

struct entry {
  char *path; /* "/a/b" */
  struct content *content;
};
typedef VEC(struct entry) entries;

/* A change of names that no sync has made safe. */
struct change {
  char *folder;    /* whose sync makes it safe */
  char *from, *to; /* from NULL: made; to NULL: removed */
  struct content *content;
};

struct disk {
  entries seen, safe;
  VEC(struct change) changes;
  uint64_t limit;
  int broken;
};

struct disk *disk_create(void) {
  struct disk *disk = calloc(1, sizeof *disk);
  if (!disk)
    abort();
  disk->limit = UINT64_MAX;
  return disk;
}

void disk_wipe(struct disk *disk) { *disk = (struct disk){.limit = disk->limit, .broken = disk->broken}; }
void disk_limit(struct disk *disk, uint64_t bytes) { disk->limit = bytes; }
void disk_break(struct disk *disk, int error) { disk->broken = error; }

/* ---- names ---- */

static const char *clean(const char *path, char out[PATH_BYTES]) {
  size_t size = 0;
  while (*path) {
    size_t length = strcspn(path, "/");
    if (length && !(length == 1 && path[0] == '.') && size + length + 2 < PATH_BYTES) {
      out[size++] = '/';
      memcpy(out + size, path, length);
      size += length;
    }
    path += length + (path[length] == '/');
  }
  out[size] = 0;
  return out;
}

static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return strndup(path, slash ? (size_t)(slash - path) : 0);
}

static struct entry *find(const entries *list, const char *path) {
  for (uint32_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i].path, path) == 0)
      return &list->items[i];
  return NULL;
}

static void put(entries *list, const char *path, struct content *content) {
  struct entry *entry = find(list, path);
  if (entry)
    entry->content = content;
  else
    vec_push(list, (struct entry){strdup(path), content});
}

static void drop(entries *list, const char *path) {
  struct entry *entry = find(list, path);
  if (entry)
    *entry = list->items[--list->count];
}

static void change(struct disk *disk, const char *from, const char *to, struct content *content) {
  vec_push(&disk->changes, (struct change){folder_of(to ? to : from), from ? strdup(from) : NULL, to ? strdup(to) : NULL, content});
}

static void make_safe(struct disk *disk, const struct change *c) {
  if (c->from)
    drop(&disk->safe, c->from);
  if (c->to)
    put(&disk->safe, c->to, c->content);
}

static bool has_folder(const struct disk *disk, const char *path) {
  char *folder = folder_of(path);
  const struct entry *entry = find(&disk->seen, folder);
  bool has = !*folder || (entry && entry->content->is_folder);
  free(folder);
  return has;
}

static struct content *make(bool is_folder) {
  struct content *content = calloc(1, sizeof *content);
  if (!content)
    abort();
  content->is_folder = is_folder;
  content->made_ns = world_now();
  return content;
}

struct content *disk_find(const struct disk *disk, const char *path) {
  static struct content root = {.is_folder = true};
  char name[PATH_BYTES];
  const struct entry *entry = find(&disk->seen, clean(path, name));
  return entry ? entry->content : *name ? NULL : &root;
}

int disk_open(struct disk *disk, const char *path, bool create, bool exclusive, struct content **out) {
  char name[PATH_BYTES];
  clean(path, name);
  *out = disk_find(disk, path);
  if (*out)
    return create && exclusive ? EEXIST : 0;
  if (!create || !has_folder(disk, name))
    return ENOENT;
  if (disk->broken == EROFS || disk->limit == 0)
    return disk->broken == EROFS ? EROFS : ENOSPC;
  *out = make(false);
  put(&disk->seen, name, *out);
  change(disk, NULL, name, *out);
  return 0;
}

/* Folders are safe at once: who is given one does not sync the folder above. */
int disk_make_folder(struct disk *disk, const char *path) {
  char name[PATH_BYTES];
  if (disk_find(disk, path))
    return EEXIST;
  if (!has_folder(disk, clean(path, name)))
    return ENOENT;
  if (disk->broken == EROFS)
    return EROFS;
  struct content *folder = make(true);
  put(&disk->seen, name, folder);
  put(&disk->safe, name, folder);
  return 0;
}

int disk_remove(struct disk *disk, const char *path, bool is_folder) {
  char name[PATH_BYTES];
  struct content *content = disk_find(disk, path);
  clean(path, name);
  if (!content)
    return ENOENT;
  if (content->is_folder != is_folder)
    return is_folder ? ENOTDIR : EISDIR;
  if (is_folder && disk_name(disk, name, 0))
    return ENOTEMPTY;
  if (disk->broken == EROFS)
    return EROFS;
  drop(&disk->seen, name);
  change(disk, name, NULL, NULL);
  return 0;
}

int disk_rename(struct disk *disk, const char *from, const char *to) {
  char old[PATH_BYTES], new[PATH_BYTES];
  struct content *content = disk_find(disk, from), *other = disk_find(disk, to);
  clean(from, old);
  clean(to, new);
  if (!content || !has_folder(disk, new))
    return ENOENT;
  if (other && other->is_folder)
    return EISDIR;
  if (disk->broken == EROFS)
    return EROFS;
  if (content->is_folder)
    return ENOSYS; /* nobody needs it */
  drop(&disk->seen, old);
  put(&disk->seen, new, content);
  change(disk, old, new, content);
  return 0;
}

const char *disk_name(const struct disk *disk, const char *folder, uint32_t number) {
  char name[PATH_BYTES];
  size_t length = strlen(clean(folder, name));
  for (uint32_t i = 0; i < disk->seen.count; i++) {
    const char *path = disk->seen.items[i].path;
    if (strncmp(path, name, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/') && number-- == 0)
      return path + length + 1;
  }
  return NULL;
}

/* ---- bytes ---- */

static uint64_t used(const struct disk *disk) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < disk->seen.count; i++)
    bytes += disk->seen.items[i].content->bytes.count;
  return bytes;
}

static void resize(struct content *content, uint64_t size) {
  while (content->bytes.count < size)
    vec_push(&content->bytes, 0);
  content->bytes.count = (uint32_t)size;
}

int64_t disk_write(struct disk *disk, struct content *content, uint64_t at, const void *data, uint64_t size) {
  if (disk->broken)
    return -disk->broken;
  uint64_t more = at + size > content->bytes.count ? at + size - content->bytes.count : 0;
  uint64_t room = disk->limit == UINT64_MAX ? UINT64_MAX : disk->limit > used(disk) ? disk->limit - used(disk) : 0;
  if (more > room) { /* as much as fits */
    if (size <= more - room)
      return -ENOSPC;
    size -= more - room;
  }
  if (at + size > content->bytes.count)
    resize(content, at + size);
  memcpy(content->bytes.items + at, data, size);
  return (int64_t)size;
}

int disk_cut(struct content *content, uint64_t size) {
  resize(content, size);
  return 0;
}

int disk_sync(struct disk *disk, struct content *content) {
  if (disk->broken)
    return disk->broken;
  if (!content->is_folder) {
    content->synced.count = 0;
    for (uint32_t i = 0; i < content->bytes.count; i++)
      vec_push(&content->synced, content->bytes.items[i]);
    return 0;
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < disk->changes.count; i++) {
    const struct change *c = &disk->changes.items[i];
    const struct entry *folder = find(&disk->seen, c->folder);
    if (folder && folder->content == content)
      make_safe(disk, c);
    else
      disk->changes.items[kept++] = *c;
  }
  disk->changes.count = kept;
  return 0;
}

static bool is_synced(const struct content *content) {
  uint32_t size = content->bytes.count;
  return content->synced.count == size && (size == 0 || memcmp(content->synced.items, content->bytes.items, size) == 0);
}

bool disk_is_safe(const struct disk *disk, const char *path) {
  char name[PATH_BYTES];
  const struct content *content = disk_find(disk, path);
  const struct entry *entry = find(&disk->safe, clean(path, name));
  return content && entry && entry->content == content && is_synced(content);
}

void disk_put(struct disk *disk, const char *path, const void *data, uint64_t size) {
  char name[PATH_BYTES];
  struct content *content = make(false);
  clean(path, name);
  for (char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    disk_make_folder(disk, name);
    *slash = '/';
  }
  resize(content, size);
  memcpy(content->bytes.items, data, size);
  disk_sync(disk, content);
  put(&disk->seen, name, content);
  put(&disk->safe, name, content);
}

/* ---- power ---- */

/* What was written since the sync: all of it, nothing, its first bytes, or some sectors. */
static void lose_bytes(struct content *content) {
  uint32_t synced = content->synced.count, size = content->bytes.count;
  bool same = is_synced(content);
  uint64_t chosen = random_below(world_random(), 4);
  if (same || chosen == 0)
    return;
  if (chosen == 1) {
    resize(content, synced);
    if (synced)
      memcpy(content->bytes.items, content->synced.items, synced);
  } else if (chosen == 2) {
    content->bytes.count = (uint32_t)random_below(world_random(), size + 1);
  } else {
    for (uint32_t at = 0; at < size; at += SECTOR)
      if (random_below(world_random(), 2))
        memset(content->bytes.items + at, 0, at + SECTOR < size ? SECTOR : size - at);
  }
}

/* Of each folder's changes the first ones have come to the disk. */
void disk_lose_power(struct disk *disk) {
  while (disk->changes.count) {
    const char *folder = disk->changes.items[0].folder;
    uint32_t of_folder = 0, kept = 0, at = 0;
    for (uint32_t i = 0; i < disk->changes.count; i++)
      of_folder += strcmp(disk->changes.items[i].folder, folder) == 0;
    uint64_t safe = random_below(world_random(), of_folder + 1);
    for (uint32_t i = 0; i < disk->changes.count; i++) {
      struct change *c = &disk->changes.items[i];
      if (strcmp(c->folder, folder) != 0)
        disk->changes.items[kept++] = *c;
      else if (at++ < safe)
        make_safe(disk, c);
    }
    disk->changes.count = kept;
  }
  disk->seen.count = 0;
  for (uint32_t i = 0; i < disk->safe.count; i++) {
    vec_push(&disk->seen, disk->safe.items[i]);
    lose_bytes(disk->safe.items[i].content);
    disk->safe.items[i].content->locked_by = NULL;
    if (!disk->safe.items[i].content->is_folder)
      disk_sync(&(struct disk){0}, disk->safe.items[i].content);
  }
}

void disk_say(const struct disk *disk, const char *who) {
  for (uint32_t i = 0; i < disk->seen.count; i++)
    if (!disk->seen.items[i].content->is_folder)
      world_say(who, "disk has %s, %u bytes", disk->seen.items[i].path, disk->seen.items[i].content->bytes.count);
}
