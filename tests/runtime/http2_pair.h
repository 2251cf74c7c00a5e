/* http2_pair.h: two HTTP/2 ends in one process, joined by memory: for tests of what is above them, without sockets. */
#ifndef TFC_TESTS_HTTP2_PAIR_H
#define TFC_TESTS_HTTP2_PAIR_H

#include <stdlib.h>
#include <string.h>
#include "runtime/net/http2.h"

struct http2_pair {
  struct http2 *client, *server;
  uint64_t now_ms;
  size_t piece_max; /* bytes move in random pieces of at most so many; 0: as they come */
  unsigned seed;
  status server_code; /* of the last http2_receive */
  uint8_t *record;    /* NULL, or where the client's bytes are kept too */
  size_t record_max, recorded;
};

static size_t pair_piece(struct http2_pair *pair, size_t left) {
  if (pair->piece_max == 0)
    return left;
  size_t piece = 1 + (size_t)rand_r(&pair->seed) % pair->piece_max;
  return piece < left ? piece : left;
}

/* Moves one round of bytes; returns how many. */
static inline size_t pair_move(struct http2_pair *pair, struct http2 *from, struct http2 *to) {
  const struct iovec *pieces;
  size_t moved = 0;
  if (http2_output(from, &pieces) == 0)
    return 0;
  for (size_t left = pieces[0].iov_len, at = 0; left > 0;) {
    size_t size = pair_piece(pair, left);
    status code = http2_receive(to, pair->now_ms, (const uint8_t *)pieces[0].iov_base + at, size);
    if (to == pair->server)
      pair->server_code = code;
    if (to == pair->server && pair->record && pair->recorded + size <= pair->record_max) {
      memcpy(pair->record + pair->recorded, (const uint8_t *)pieces[0].iov_base + at, size);
      pair->recorded += size;
    }
    at += size;
    left -= size;
    moved += size;
  }
  http2_written(from, moved);
  return moved;
}

static inline size_t pair_pump(struct http2_pair *pair) {
  size_t all = 0, moved;
  do {
    moved = pair_move(pair, pair->client, pair->server);
    moved += pair_move(pair, pair->server, pair->client);
    all += moved;
  } while (moved > 0);
  return all;
}

#endif
