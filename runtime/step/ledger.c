/* ledger.c: see ledger.h. After notes on exactly-once by sequence numbers for each sender, with a window of one. */
#include "runtime/step/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "runtime/program/fault.h"

/* ---- rows ---- */

/* Where the row is, or would be. */
static uint32_t row_place(const struct ledger *ledger, uint32_t driver, uint32_t lane) {
  uint32_t low = 0, high = ledger->count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    const struct ledger_row *row = &ledger->rows[middle];
    if (row->driver < driver || (row->driver == driver && row->lane < lane))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const struct ledger_row *ledger_find(const struct ledger *ledger, uint32_t driver, uint32_t lane) {
  uint32_t at = row_place(ledger, driver, lane);
  const struct ledger_row *row = &ledger->rows[at];
  return at < ledger->count && row->driver == driver && row->lane == lane ? row : NULL;
}

static status row_get(struct ledger *ledger, uint32_t driver, uint32_t lane, struct ledger_row **out) {
  uint32_t at = row_place(ledger, driver, lane);
  *out = &ledger->rows[at];
  if (at < ledger->count && (*out)->driver == driver && (*out)->lane == lane)
    return OK;
  if (ledger->count == ledger->capacity) {
    uint32_t capacity = ledger->capacity * 2 + 4;
    struct ledger_row *grown = realloc(ledger->rows, capacity * sizeof *grown);
    if (!grown)
      return fail(RESOURCE_EXHAUSTED, "no memory to note the steps of task %u", driver);
    ledger->rows = grown;
    ledger->capacity = capacity;
  }
  memmove(&ledger->rows[at + 1], &ledger->rows[at], (ledger->count - at) * sizeof *ledger->rows);
  ledger->rows[at] = (struct ledger_row){.driver = driver, .lane = lane};
  ledger->count++;
  *out = &ledger->rows[at];
  return OK;
}

void ledger_deinit(struct ledger *ledger) {
  free(ledger->rows);
  *ledger = (struct ledger){0};
}

status ledger_copy(const struct ledger *from, struct ledger *to) {
  struct ledger_row *rows = malloc(((size_t)from->count + 1) * sizeof *rows);
  if (!rows)
    return fail(RESOURCE_EXHAUSTED, "no memory for a copy of the steps that were applied");
  if (from->count > 0)
    memcpy(rows, from->rows, from->count * sizeof *rows);
  free(to->rows);
  *to = (struct ledger){from->initialised, from->count, from->count, rows};
  return OK;
}

/* ---- steps ---- */

enum ledger_verdict ledger_judge(const struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t serial) {
  static const struct ledger_row nothing = {0};
  const struct ledger_row *row = ledger_find(ledger, driver, serial_lane(serial));
  uint64_t count = serial_count(serial);
  if (!row)
    row = &nothing;
  if (command < row->command)
    return LEDGER_STALE;
  if (command > row->command)
    return count == 1 ? LEDGER_RUN : LEDGER_GAP;
  if (count <= row->last)
    return FAULT(1) ? LEDGER_RUN : LEDGER_DRY;
  return count == row->last + 1 ? LEDGER_RUN : LEDGER_GAP;
}

status ledger_open(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t serial) {
  struct ledger_row *row;
  TRY(row_get(ledger, driver, serial_lane(serial), &row));
  if (command != row->command)
    *row = (struct ledger_row){.driver = driver, .lane = serial_lane(serial), .command = command};
  row->finished = false;
  row->open = serial_count(serial);
  return OK;
}

status ledger_commit(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t serial) {
  TRY(ledger_open(ledger, driver, command, serial));
  struct ledger_row *row;
  TRY(row_get(ledger, driver, serial_lane(serial), &row));
  row->open = 0;
  if (row->last < serial_count(serial))
    row->last = serial_count(serial);
  return OK;
}

void ledger_finish(struct ledger *ledger, uint32_t driver, bool finished) {
  for (uint32_t i = 0; i < ledger->count; i++)
    if (ledger->rows[i].driver == driver)
      ledger->rows[i].finished = finished;
}

status ledger_rewind(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t last_serial) {
  struct ledger_row *row;
  TRY(row_get(ledger, driver, serial_lane(last_serial), &row));
  *row = (struct ledger_row){.driver = driver, .lane = serial_lane(last_serial), .command = command, .last = serial_count(last_serial)};
  return OK;
}

status ledger_raise(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t last_serial) {
  const struct ledger_row *row = ledger_find(ledger, driver, serial_lane(last_serial));
  bool is_there = row && (row->command > command || (row->command == command && row->last >= serial_count(last_serial)));
  return is_there ? OK : ledger_rewind(ledger, driver, command, last_serial);
}

struct ledger_next ledger_next(const struct ledger_row *rows, uint32_t row_count) {
  struct ledger_next next = {.command = 0, .count = 1};
  uint64_t least = UINT64_MAX, most = 0;
  bool finished = true;
  for (uint32_t i = 0; i < row_count; i++)
    if (rows[i].command > next.command)
      next.command = rows[i].command;
  for (uint32_t i = 0; i < row_count; i++) {
    bool is_newest = rows[i].command == next.command;
    uint64_t last = is_newest ? rows[i].last : 0; /* who has not heard of the command has nothing of it */
    least = last < least ? last : least;
    most = last > most ? last : most;
    finished = finished && (!is_newest || rows[i].finished); /* others had no part in it: who has finished has done all its steps */
  }
  if (row_count == 0 || next.command == 0 || finished)
    return (struct ledger_next){next.command + 1, 1};
  next.count = 1 + (FAULT(2) ? most : least);
  return next;
}

/* ---- bytes ---- */

#define LEDGER_MAGIC UINT64_C(0x31726567646c6674)
struct packed_head {
  uint64_t magic;
  uint32_t count, initialised;
};
struct packed_row {
  uint64_t last, open;
  uint32_t driver, command;
  uint32_t lane, finished;
};

size_t ledger_byte_size(const struct ledger *ledger) { return sizeof(struct packed_head) + ledger->count * sizeof(struct packed_row); }

void ledger_write(const struct ledger *ledger, void *out) {
  struct packed_head head = {LEDGER_MAGIC, ledger->count, ledger->initialised};
  char *at = out;
  memcpy(at, &head, sizeof head);
  at += sizeof head;
  for (uint32_t i = 0; i < ledger->count; i++, at += sizeof(struct packed_row)) {
    const struct ledger_row *row = &ledger->rows[i];
    struct packed_row packed = {row->last, row->open, row->driver, row->command, row->lane, row->finished};
    memcpy(at, &packed, sizeof packed);
  }
}

static status read_row(struct ledger *ledger, const char *at) {
  struct packed_row packed;
  struct ledger_row *row;
  memcpy(&packed, at, sizeof packed);
  if (packed.driver >= LIMIT_TASKS || packed.lane >= LEDGER_LANES_MAX || packed.finished > 1 || serial_lane(packed.last) != 0 ||
      serial_lane(packed.open) != 0 || ledger_find(ledger, packed.driver, packed.lane))
    return fail(DATA_LOSS, "the list of applied steps is damaged");
  TRY(row_get(ledger, packed.driver, packed.lane, &row));
  *row = (struct ledger_row){packed.driver, packed.lane, packed.command, packed.finished, packed.last, packed.open};
  return OK;
}

status ledger_read(const void *data, size_t size, struct ledger *out) {
  struct packed_head head;
  if (size < sizeof head)
    return fail(DATA_LOSS, "the list of applied steps is too short");
  memcpy(&head, data, sizeof head);
  if (head.magic != LEDGER_MAGIC || head.initialised > 1 || head.count != (size - sizeof head) / sizeof(struct packed_row) ||
      (size - sizeof head) % sizeof(struct packed_row) != 0)
    return fail(DATA_LOSS, "the list of applied steps is damaged");
  struct ledger read = {.initialised = head.initialised};
  for (uint32_t i = 0; i < head.count; i++) {
    status result = read_row(&read, (const char *)data + sizeof head + i * sizeof(struct packed_row));
    if (result != OK) {
      ledger_deinit(&read);
      return result;
    }
  }
  ledger_deinit(out);
  *out = read;
  return OK;
}
