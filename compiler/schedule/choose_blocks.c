/* choose_blocks.c: products whose factors do not fit where they are read from: by blocks of terms, which are copied to the stack first, in
 * the order in which tiles read them, or stay in the second cache as they lie.
 *
 * Tasks are groups of strips of columns, and parts of the rows. For a block of terms a task copies its part of the second factor, a panel
 * for each strip, asking for lines ahead; then all its rows meet it, eight, six or four at a time, from the second cache. Sums wait on the
 * stack until the last block; where registers are few, tiles are small and lose by that: a block has all terms there. Of a first factor
 * that lies along the rows, as in the gradient of weights, up to eight tiles' rows are copied too: their terms lie in a page each. Rows
 * that are no whole tiles end in smaller ones; of an open number a task has as many as may wait. The copy of a second factor that lies
 * along the sum goes by squares, which are transposed in registers.
 *
 * Several loops of terms that do not collapse, as those over pixels which are met in steps of two, become one where both factors are
 * copied. Where one has an open number of turns, images around their pixels, or the rows of a step in a sum over the turns of a loop,
 * blocks are those of the innermost in each turn of the others.
 *
 * Factors that are computed of what they load (bfloat16, int8) are copied, too, so that each element is computed once for a task: rows by
 * the tile, as they lie.
 *
 * A copy costs the more, the fewer rows meet it. Where the second cache gives vectors as fast as tiles of eight rows take them, a block of
 * a second factor that lies along the columns is not copied: the first tile's rows bring it there. Elsewhere that may hold beside rows that
 * are copied, which are a stream; strips are as many as stay then, so that the result is written in long rows.
 *
 * Where lines from beyond the second cache are waited for, narrow tasks with small blocks are proposed, too: rows that lie a page apart
 * find few sets of that cache. While few rows meet a block, they ask for the next one. */
#include <string.h>

#include "compiler/schedule/axis_words.h"

struct blocked {
  const struct nest *n;
  const struct contraction *c; /* of one axis of terms; where the nest's has several (`words` are of that), they are fused, */
  const char *fuse;            /* by this step, */
  const char *turns;           /* or the blocks are those of each turn of these loops; "": there are none */
  struct product_work work;
  struct product_blocks blocks;
  int rows;           /* the axis m; that of columns is c->lanes */
  bool is_open;       /* their number is, */
  bool is_open_sum;   /* that of terms, */
  bool is_open_width; /* that of columns */
  bool is_along;      /* the second factor lies along the sum */
  bool computed[2];   /* of what a factor loads */
  int64_t batch, m, k, width, lanes;
  int64_t tile;   /* rows of one */
  int64_t terms;  /* of a block */
  int64_t strips; /* of a task */
  int64_t group;  /* tiles whose rows are copied together; 1: none are */
  int64_t groups; /* of a task */
  int64_t wanted; /* tasks, at least */
  struct axis_words words;
};

#define GROUP_MAX 8           /* tiles whose rows are copied together */
#define ROWS_MIN 16           /* fewer do not pay for the copy */
#define ROWS_COPIED 4         /* from so many on they do, where the second factor lies along the sum, */
#define ROWS_COMPUTED 12      /* and from so many, where it is computed of what it loads */
#define TERMS 512             /* of a block, at most, */
#define TERMS_COPIED 256      /* where the first factor is copied too, or it is open how many there are */
#define TERMS_MIN 32          /* of a sum: fewer do not pay for its tile, unless the second factor lies along it: plain loops gather */
#define EVEN_TASKS 4          /* of a core: more differ little from core to core */
#define OPEN_ROWS 256         /* of a task, where their number is open */
#define STRIPS_IN_PLACE 3     /* of a task: runs that long of a row's columns */
#define CHUNK_ROWS 256        /* of a task, at least: fewer do not pay for a copy of their own, */
#define CHUNK_ROWS_COPIED 128 /* unless rows are copied, too, which fewer tasks of wider strips do less often */
#define AHEAD 16              /* terms whose lines are asked for, */
#define AHEAD_ROWS 8          /* of a first factor that is copied, */
#define AHEAD_SQUARES 2       /* squares of a second factor along the sum */
#define HINTS_MAX 32          /* lines in a turn */
#define FLAT_ROWS 6           /* of a tile */
#define FLAT_VECTORS 4        /* of columns */
#define NARROW_STRIPS 2       /* of a narrow task, of two vectors each, */
#define NARROW_TASKS 4        /* at least: for fewer columns others have parts of the rows */
#define NARROW_TERMS 128      /* of which its block has so many terms, */
#define NARROW_ROWS 64        /* for no more than so many rows */
#define NARROW_TERMS_FEW 64   /* fewer, */
#define NARROW_TERMS_NEAR 256 /* and more where none are asked for: a strip's stay in the first cache */

/* Rows of a tile, as registers allow; those that are copied are so by vectors of them. */
static const int64_t few_heights[] = {6, 4, 0}, many_heights[] = {8, 0}, flat_heights[] = {8, FLAT_ROWS, 0};
static bool has_few(const struct blocked *b) { return b->n->machine->registers < 32; }
/* Where loads hold up multiply-adds, tiles of four vectors need least of them; for columns that make no whole strips of those, hints would
 * be of too many lines. */
static bool may_be_flat(const struct blocked *b) {
  if (b->blocks.pairs)
    return false;
  bool is_whole = !b->is_open_width && b->width % (FLAT_VECTORS * b->lanes) == 0;
  return tile_loads_hold(b->n->machine) && b->is_along && is_whole && !b->blocks.copies_rows &&
         tile_of(b->n->machine, FLAT_ROWS, FLAT_VECTORS);
}
static const int64_t *heights_of(const struct blocked *b) {
  if (has_few(b))
    return b->blocks.copies_rows ? &few_heights[1] : few_heights;
  return may_be_flat(b) ? flat_heights : many_heights;
}

/* Rows that are no whole tile, or may be none: the last tiles are smaller. */
static bool has_rest(const struct blocked *b) { return b->is_open || b->m % b->tile != 0; }

/* ---- which nests ---- */

/* Of the loop that two are when they are one, the inner one's if each turn of the outer one begins where the last one ended. */
static int64_t stride_with(const struct contraction_axis *outer, const struct contraction_axis *inner, int factor) {
  int64_t stride = inner->stride[factor];
  return stride != STRIDE_OPEN && outer->stride[factor] == stride * inner->extent ? stride : STRIDE_OPEN;
}
/* The contraction as it is when its loops of terms are one, of an open stride where they do not lie in one line. False, and *out is
 * unchanged: it has but one, or they cannot be. */
static bool fuse_terms(const struct contraction *c, struct contraction *out) {
  struct contraction_axis all = c->axes[c->axis_count - 1];
  for (int i = c->par_count; i < c->axis_count; i++)
    if (c->axes[i].role != ROLE_K || c->axes[i].extent < 1)
      return false;
  if (c->axis_count < c->par_count + 2)
    return false;
  for (int i = c->axis_count - 2; i >= c->par_count; i--) {
    for (int f = 0; f < FACTORS; f++)
      all.stride[f] = stride_with(&c->axes[i], &all, f);
    all.extent *= c->axes[i].extent;
  }
  *out = *c;
  out->axes[c->par_count] = all;
  out->axis_count = c->par_count + 1;
  return true;
}
/* The contraction of each turn of the outer loops of terms, where some have an open number; *turns of them, all. */
static bool leave_turns(const struct contraction *c, struct contraction *out, double *turns) {
  bool is_open = false;
  *turns = 1;
  for (int i = c->par_count; i < c->axis_count; i++) {
    is_open = is_open || c->axes[i].extent < 0;
    *turns *= c->axes[i].role != ROLE_K ? 0 : i < c->axis_count - 1 ? axis_terms(c, i) : 1;
  }
  if (c->axis_count < c->par_count + 2 || !is_open || *turns == 0)
    return false;
  *out = *c;
  out->axes[c->par_count] = c->axes[c->axis_count - 1];
  out->axis_count = c->par_count + 1;
  return true;
}
/* What is not copied is read by quotients and remainders in the innermost loop; squares' hints find no line by them. */
static bool may_be_fused(const struct blocked *b) { return b->blocks.copies_rows && !b->is_along; }
/* One axis of rows, the longest, one of columns, one of terms; others are batches. */
static bool find_axes(struct blocked *b) {
  const struct contraction *c = b->c;
  b->rows = -1;
  b->batch = 1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    bool is_sum = i >= c->par_count, is_extra = a->role == ROLE_N && i != c->lanes;
    if (a->extent == 0 || is_extra || (is_sum && a->role != ROLE_K))
      return false;
    if (a->role == ROLE_M && (b->rows < 0 || a->extent >= c->axes[b->rows].extent))
      b->rows = i;
  }
  for (int i = 0; i < c->par_count; i++)
    b->batch *= i == b->rows || i == c->lanes ? 1 : (int64_t)axis_turns(&c->axes[i]);
  b->is_open = b->rows >= 0 && c->axes[b->rows].extent < 0;
  b->is_open_sum = c->axes[c->axis_count - 1].extent < 0;
  b->is_open_width = c->lanes >= 0 && c->axes[c->lanes].extent < 0;
  return c->axis_count == c->par_count + 1 && b->rows >= 0 && c->lanes >= 0 && c->axes[c->lanes].role == ROLE_N;
}
/* One place is loaded for each factor, which is that or computed of it. */
static bool has_factors(struct blocked *b) {
  const struct contraction *c = b->c;
  for (int i = 0; i < FACTORS; i++) {
    b->computed[i] = c->factor[i] != c->load[i];
    if (c->load[i] == NO_EXPR || c->guard[i] != NO_EXPR)
      return false;
  }
  return c->dtype == DTYPE_FLOAT || c->dtype == DTYPE_DOUBLE || c->dtype == DTYPE_INT32;
}
static void pair_terms(struct blocked *b) {
  b->blocks.pairs = true;
  b->blocks.computes_rows = b->computed[0] = is_computed_narrow(b->c, 0);
  b->blocks.computes_columns = b->computed[1] = is_computed_narrow(b->c, 1);
  b->work.bytes = PAIR_BYTES;
}
static bool is_blocked(struct blocked *b) {
  const struct contraction *c = b->c;
  if (!has_factors(b) || !find_axes(b))
    return false;
  const struct contraction_axis *rows = &c->axes[b->rows], *columns = &c->axes[c->lanes], *sum = &c->axes[c->par_count];
  int64_t bytes = (int64_t)dtype_size(c->dtype);
  b->m = b->is_open ? OPEN_ROWS : rows->extent;
  b->k = b->is_open_sum ? TERMS_USUAL : sum->extent;
  b->width = b->is_open_width ? COLUMNS_USUAL : columns->extent;
  b->lanes = b->n->machine->vector_bytes / bytes;
  b->is_along = columns->stride[1] != 1;
  b->blocks.copies_rows = sum->stride[0] != 1;
  b->work = (struct product_work){.batch = (double)b->batch,
                                  .m = b->is_open ? ROWS_USUAL : (double)b->m,
                                  .k = (double)b->k,
                                  .width = (double)b->width,
                                  .lanes = (double)b->lanes,
                                  .bytes = (double)bytes,
                                  .is_transposed = b->blocks.copies_rows,
                                  .is_along = b->is_along,
                                  .is_open = b->is_open};
  b->blocks.computes_rows = b->computed[0];
  b->blocks.computes_columns = b->computed[1];
  bool lies = (sum->stride[0] == 1 || rows->stride[0] == 1) && (columns->stride[1] == 1 || sum->stride[1] == 1);
  return lies && b->m >= ROWS_MIN && (b->is_along || (b->k >= TERMS_MIN && b->width >= 3 * b->lanes));
}

/* ---- sizes ---- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Of L2, for what a task copies and keeps. */
static int64_t bytes_max(const struct blocked *b) { return b->n->machine->bytes[LEVEL_L2] / 4 * 3; }
/* Small tiles lose most by sums that wait: a block has all terms there, unless a strip of them is half of what may be copied. */
static int64_t most_terms(const struct blocked *b, int64_t vectors) {
  if (b->blocks.is_narrow)
    return !product_may_be_asked_for(b->n->machine, &b->work) ? NARROW_TERMS_NEAR : b->m <= NARROW_ROWS ? NARROW_TERMS_FEW : NARROW_TERMS;
  if (b->blocks.copies_rows || b->is_open_sum)
    return TERMS_COPIED;
  if (b->computed[0] && b->is_open) /* a task's rows are copied, too */
    return TERMS;
  return has_few(b) ? bytes_max(b) / 2 / (vectors * b->lanes * (int64_t)b->work.bytes) : TERMS;
}
/* Whether the last of an odd number of terms, or one that may be odd, is added behind all pairs. */
static bool has_single(const struct blocked *b) { return b->blocks.pairs && (b->is_open_sum || b->k % PAIR_TERMS != 0); }
/* Whether there is something behind a block: another one, or that. */
static bool sums_wait(const struct blocked *b) { return b->terms < b->k || has_single(b) || *b->turns; }
/* What lies on the stack for a task of so many strips. */
static int64_t bytes_of(const struct blocked *b, int64_t strips) {
  int64_t width = strips * b->blocks.tile->vectors * b->lanes, elements = b->terms * width;
  int64_t sums = sums_wait(b) ? (has_rest(b) ? b->m : b->groups * b->group * b->tile) * width : 0;
  elements += b->blocks.copies_rows ? b->terms * b->tile * b->group : 0;
  elements += b->computed[0] && b->is_open ? b->terms * b->m : 0;
  return elements * (int64_t)b->work.bytes + sums * (int64_t)dtype_size(b->c->dtype);
}
/* Tiles whose rows are copied together, in whole groups of each of so many parts: the largest of those that are not much smaller than the
 * largest of all. */
static int64_t group_of(const struct blocked *b, int64_t tiles, int64_t parts) {
  int64_t largest = b->blocks.copies_rows ? GROUP_MAX : 1, group;
  while (tiles % largest)
    largest--;
  for (group = largest; group > 1 && tiles % (group * parts); group--)
    ;
  return group * 2 > largest ? group : largest;
}
/* Rows of a task: all, or one of about so many equal parts. */
static void part_rows(struct blocked *b, int64_t parts) {
  int64_t tiles = b->m / b->tile;
  b->group = group_of(b, tiles, parts);
  while (tiles / b->group % parts)
    parts--;
  b->groups = tiles / b->group / parts;
  b->blocks.row_tasks = (double)parts;
}
static bool has_whole_strips(const struct blocked *b) { return !b->is_open_width && b->width % (b->blocks.tile->vectors * b->lanes) == 0; }
/* Refused: copies that would read past the end, where a size is no multiple. */
static bool has_no_rest(const struct blocked *b) {
  bool terms = b->is_open_sum || b->k % b->terms == 0;
  return has_whole_strips(b) || !b->blocks.copies_rows || terms;
}
/* Strips that the core with most of them has, where tasks of `each` strips, and a last one of what is left, go to cores in turn. */
static int64_t most_strips(const struct blocked *b, int64_t strips, int64_t each) {
  int64_t cores = b->n->machine->cores, others = (int64_t)b->blocks.row_tasks * b->batch, whole = strips / each * others;
  bool rests_find_room = whole % cores + (strips % each ? others : 0) <= cores;
  return divide_up(whole, cores) * each + (whole % cores && rests_find_room ? 0 : divide_up(others, cores) * (strips % each));
}
/* At least so many groups of strips; some more where cores would have different numbers of few tasks. */
static int64_t even_groups(const struct blocked *b, int64_t groups, int64_t strips) {
  int64_t cores = b->n->machine->cores, others = (int64_t)b->blocks.row_tasks * b->batch, best = groups;
  bool is_few = cores > 1 && groups * others < EVEN_TASKS * cores;
  for (int64_t more = groups + 1; is_few && more <= 2 * groups && more <= strips; more++)
    if (most_strips(b, strips, divide_up(strips, more)) < most_strips(b, strips, divide_up(strips, best)))
      best = more;
  return best;
}
/* A task is as wide as its copies allow, so that results are written in long runs. */
static bool size_for(struct blocked *b, int64_t parts, int64_t vectors) {
  int64_t count = divide_up(b->width, vectors * b->lanes), most = HINTS_MAX / vectors, terms = most_terms(b, vectors);
  most = b->blocks.is_narrow ? NARROW_STRIPS : !b->blocks.in_place ? most : b->blocks.copies_rows ? count : STRIPS_IN_PLACE;
  b->blocks.tile = tile_of(b->n->machine, (int)b->tile, (int)vectors);
  int64_t whole = b->lanes * (b->blocks.pairs ? PAIR_TERMS : 1);
  b->terms = least(divide_up(divide_up(b->k, divide_up(b->k, terms)), whole) * whole, b->k);
  part_rows(b, parts);
  int64_t all = count * (int64_t)b->blocks.row_tasks * b->batch;
  most = least(most, b->blocks.is_narrow && all > b->wanted ? all / b->wanted : divide_up(all, b->wanted));
  while (most > 1 && bytes_of(b, most) > bytes_max(b))
    most--;
  b->strips = divide_up(count, even_groups(b, divide_up(count, most), count));
  b->blocks.terms = (double)b->terms;
  b->blocks.column_tasks = (double)divide_up(count, b->strips);
  return bytes_of(b, b->strips) <= bytes_max(b) && has_no_rest(b);
}
/* Vectors of columns that the core with most of them has. */
static int64_t core_vectors(const struct blocked *b) {
  int64_t vectors = b->blocks.tile->vectors, strips = divide_up(b->width, vectors * b->lanes);
  return (b->n->machine->cores > 1 ? most_strips(b, strips, b->strips) : strips) * vectors;
}
/* Three vectors load least where two multiply-adds begin in a cycle; else two are as good, and fit more widths. Squares want them only
 * where that counts. */
static bool may_have_three(const struct blocked *b) {
  const struct machine *machine = b->n->machine;
  const struct tile *three = tile_of(machine, (int)b->tile, 3), *two = tile_of(machine, (int)b->tile, 2);
  bool is_fast = machine->fma_rate > 1 && three, is_cheaper = is_fast && two && three->step * 2 < two->step * 3;
  return is_fast && !b->blocks.is_narrow && (!b->is_along || is_cheaper);
}
/* If sums of three would take all registers, they are worth as much as they save of columns. */
static bool are_three_better(const struct blocked *three, const struct blocked *two) {
  int64_t wide = core_vectors(three) * 10, slim = core_vectors(two);
  return has_few(two) ? wide < slim * 9 : wide <= slim * 11;
}
static bool choose_sizes(struct blocked *b, int64_t parts) {
  if (!has_few(b) && b->tile == FLAT_ROWS)
    return size_for(b, parts, FLAT_VECTORS);
  struct blocked three = *b;
  bool may_be_three = may_have_three(b) && size_for(&three, parts, 3), may_be_two = size_for(b, parts, 2);
  if (may_be_three && (!may_be_two || are_three_better(&three, b)))
    *b = three;
  return may_be_three || may_be_two;
}

/* ---- steps ---- */

static const char *buffer_text(const struct blocked *b, int factor) { return contraction_buffer(b->c, factor)->name; }
/* Every `@` becomes what tells this nest's loops from those of others. */
static const char *with_number(const struct blocked *b, const char *text) {
  const char *number = b->n->number ? arena_printf(b->n->arena, "_%d", b->n->number) : "", *out = "";
  for (const char *at; (at = strchr(text, '@')); text = at + 1)
    out = arena_printf(b->n->arena, "%s%.*s%s", out, (int)(at - text), text, number);
  return arena_printf(b->n->arena, "%s%s", out, text);
}
/* Rows that a task goes through. With a rest they are tiles only when the sums of a block wait. */
static const char *tiles_text(const struct blocked *b) { return b->is_open ? "mr@" : has_rest(b) ? "m@" : "mo@"; }
/* The loops of a task, outermost first, but for those around and lanes. The first cache keeps a narrow task's strip for all tiles, else a
 * tile's rows for all strips. */
static const char *nest_text(const struct blocked *b) {
  const char *form = b->blocks.is_narrow ? "%snj@ %s %s" : "%s%s nj@ %s";
  return arena_printf(b->n->arena, form, b->blocks.copies_rows ? "mb@ " : "", tiles_text(b), has_rest(b) ? "" : "mi@ ");
}
static const char *rest_text(const struct blocked *b) {
  if (!has_rest(b))
    return "";
  const char *order = b->blocks.is_narrow ? "" : "order mo@ nj@ mi@ ni@; ", *four = b->tile > 4 ? "4 " : "";
  return arena_printf(b->n->arena, "split %s %lld -> mo@ mi@ tail cut %s2 1; %s", tiles_text(b), (long long)b->tile, four, order);
}
static const char *chunk_text(const struct blocked *b) { return b->is_open || b->blocks.row_tasks > 1 ? "mc@ " : ""; }
static const char *rows_text(const struct blocked *b) {
  struct arena *a = b->n->arena;
  bool groups = b->blocks.copies_rows, chunks = b->blocks.row_tasks > 1;
  if (b->is_open)
    return arena_printf(a, "split m@ %lld -> mc@ mr@; ", (long long)b->m);
  if (has_rest(b))
    return "";
  const char *text = arena_printf(a, "split m@ %lld -> %s@ mi@; ", (long long)b->tile, groups || chunks ? "ms" : "mo");
  if (groups)
    text = arena_printf(a, "%ssplit ms@ %lld -> %s@ mo@; ", text, (long long)b->group, chunks ? "mt" : "mb");
  if (chunks)
    text = arena_printf(a, "%ssplit %s@ %lld -> mc@ %s@; ", text, groups ? "mt" : "ms", (long long)b->groups, groups ? "mb" : "mo");
  return text;
}
static const char *begin_text(const struct blocked *b) {
  struct arena *a = b->n->arena;
  const char *batch = axis_words_others(&b->words, 0, b->c->par_count);
  const char *text = arena_printf(a, "%s%s; split n@ %lld -> ns@ ni@; split ns@ %lld -> no@ nj@; ", axis_words_begin(&b->words), b->fuse,
                                  (long long)(b->blocks.tile->vectors * b->lanes), (long long)b->strips);
  return arena_printf(a, "%s%sorder%s %sno@ %sni@; ", text, rows_text(b), batch, chunk_text(b), nest_text(b));
}
static bool has_whole_squares(const struct blocked *b) { return !b->is_open_width && b->width % b->lanes == 0; }
/* Columns that make no square are copied one by one. */
static const char *squares_text(const struct blocked *b) {
  const char *form = has_whole_squares(b) ? "split pi@ %lld -> ps@ pt@; order pj@ ps@ pq@ pt@ pr@; "
                                          : "order pj@ pq@ pi@ pr@; split pi@ %lld -> ps@ pt@ tail cut 1; ";
  return arena_printf(b->n->arena, form, (long long)b->lanes);
}
/* Each of its columns is a line or two; of many there would be too many hints. */
static const char *squares_hint_text(const struct blocked *b) {
  int64_t bytes = (int64_t)dtype_size(contraction_buffer(b->c, 1)->dtype);
  int64_t lines = divide_up(b->lanes * (b->blocks.pairs ? PAIR_TERMS : 1) * bytes, LINE_BYTES);
  int64_t columns = b->lanes * (has_whole_squares(b) ? 1 : b->blocks.tile->vectors);
  return lines * columns > HINTS_MAX ? "" : arena_printf(b->n->arena, "fetch %s at pq@ ahead %d; ", buffer_text(b, 1), AHEAD_SQUARES);
}
static const char *computed_text(const struct blocked *b, int factor) {
  return b->blocks.pairs ? narrow_text(b->c, factor) : b->computed[factor] ? " computed" : "";
}
/* The two terms of a pair lie innermost where they are copied: loops for them behind those of other lists. */
static const char *pair_words(const struct blocked *b) { return b->blocks.pairs ? " kw@" : ""; }
/* Whether rows are copied as they lie, those of a tile together; all of a task's, where their number is open. */
static bool has_own_rows(const struct blocked *b) { return b->computed[0] && !b->blocks.copies_rows; }
/* Tiles, where they are not there yet, and their sums. */
static const char *tile_text(const struct blocked *b, const char *k) {
  struct arena *a = b->n->arena;
  const char *at = !b->is_open ? "mo@ by mi@" : sums_wait(b) ? "kb@ by mr@" : "no@ by mr@";
  const char *rows = arena_printf(a, "stage %s%s at %s %s%s -> qi@ qk@%s; split qk@ %lld -> qt@ ql@; ", buffer_text(b, 0),
                                  computed_text(b, 0), at, k, pair_words(b), b->blocks.pairs ? " qw@" : "", (long long)b->lanes);
  rows = has_own_rows(b) ? rows : "";
  return arena_printf(a, "%s%s%ssink mi@ ni@ under %s in register; %s", b->is_open ? rows : "", rest_text(b), b->is_open ? "" : rows, k,
                      b->blocks.pairs ? "pair kw@; " : "");
}
/* Terms two by two: of an odd number the last one is added behind all blocks. */
static const char *pairs_text(const struct blocked *b, bool waits) {
  const char *rest = has_single(b) ? " tail kt@ cut 1" : "";
  return arena_printf(b->n->arena, "split k@ %d -> %s kw@%s; ", PAIR_TERMS, waits ? "ku@" : "kp@", rest);
}
/* What is copied of the second factor. */
static const char *columns_text(const struct blocked *b, const char *at, const char *k) {
  struct arena *a = b->n->arena;
  const char *text = arena_printf(a, "stage %s%s at %s by nj@ %s ni@%s -> pj@ pk@ pi@%s; ", buffer_text(b, 1), computed_text(b, 1), at, k,
                                  pair_words(b), b->blocks.pairs ? " pw@" : "");
  if (b->is_along)
    return arena_printf(a, "%ssplit pk@ %lld -> pq@ pr@; %s%s", text, (long long)b->lanes, squares_text(b), squares_hint_text(b));
  const char *form = b->blocks.asks ? "%sorder pk@ pj@ pi@; " : "%sorder pk@ pj@ pi@; fetch %s at pk@ ahead %d; ";
  return arena_printf(a, form, text, buffer_text(b, 1), AHEAD);
}
static const char *copies_text(const struct blocked *b) {
  struct arena *a = b->n->arena;
  bool waits = sums_wait(b);
  const char *k = b->blocks.pairs ? "kp@" : waits ? "kk@" : "k@", *text = b->blocks.pairs ? pairs_text(b, waits) : "";
  if (waits)
    text = arena_printf(a, "%ssplit %s %lld -> kb@ %s; sink %sni@ under%s kb@ in stack; ", text, b->blocks.pairs ? "ku@" : "k@",
                        (long long)(b->blocks.pairs ? b->terms / PAIR_TERMS : b->terms), k, nest_text(b), b->turns);
  if (!b->blocks.in_place)
    text = arena_printf(a, "%s%s", text, columns_text(b, waits ? "kb@" : "no@", k));
  if (b->blocks.asks)
    return arena_printf(a, "%ssplit kk@ %d -> kc@ kd@; %sfetch %s at kb@ ahead 1 over nj@ mo@ kc@; ", text, ASKING_TERMS,
                        tile_text(b, "kc@ kd@"), buffer_text(b, 1));
  if (b->blocks.copies_rows)
    text =
      arena_printf(a, "%sstage %s%s at mb@ by mo@ %s mi@%s -> qo@ qk@ qi@%s; order qk@ qo@ qi@; fetch %s at qk@ ahead %d; ", text,
                   buffer_text(b, 0), computed_text(b, 0), k, pair_words(b), b->blocks.pairs ? " qw@" : "", buffer_text(b, 0), AHEAD_ROWS);
  return arena_printf(a, "%s%s", text, tile_text(b, k));
}

/* Along the lanes of what is copied. */
static const char *copied_text(const struct blocked *b) {
  const char *columns = b->blocks.in_place ? "" : b->is_along ? "pr@ " : "pi@ ";
  return arena_printf(b->n->arena, "%s%s", columns, b->blocks.copies_rows ? "qi@ " : has_own_rows(b) ? "ql@ " : "");
}
/* What is copied of a pair's second term lies behind the first one. */
static const char *copied_pairs_text(const struct blocked *b) {
  bool copies_rows = b->blocks.copies_rows || has_own_rows(b);
  return b->blocks.pairs ? arena_printf(b->n->arena, "pw@ %s", copies_rows ? "qw@ " : "") : "";
}
/* Than a kernel should have. */
static bool wants_fewer(const struct blocked *b) { return b->wanted < tasks_wanted(b->n->machine); }
static void propose(const struct blocked *b, struct candidates *out) {
  const char *text = arena_printf(b->n->arena, "%s%srun%s %sno@ tasks; run mi@ %s%sunroll; run ni@ %slanes", begin_text(b), copies_text(b),
                                  axis_words_others(&b->words, 0, b->c->par_count), chunk_text(b), b->is_along ? "pt@ " : "",
                                  copied_pairs_text(b), copied_text(b));
  double late = wants_fewer(b) ? FEWER_TASKS : 1; /* a core that begins late has nobody to take over from it */
  vec_push(&out->items,
           ((struct candidate){.steps = with_number(b, text), .cycles = product_block_cycles(b->n->machine, &b->work, &b->blocks) * late}));
}
/* Parts of the rows at most: what is left over of tiles has no place in them. */
static int64_t most_parts(const struct blocked *b) {
  int64_t most = b->is_open ? 1 : b->m / (b->blocks.copies_rows ? CHUNK_ROWS_COPIED : CHUNK_ROWS);
  return most < 1 ? 1 : least(most, b->wanted);
}
static bool has_fewer_tasks(const struct blocked *b, int64_t than) {
  return b->work.batch * b->blocks.row_tasks * b->blocks.column_tasks < (double)than;
}
static void propose_narrow(const struct blocked *b, struct candidates *out) {
  struct blocked sized = *b;
  const struct machine *machine = b->n->machine;
  bool may_be_narrow = product_may_be_narrow(machine, &b->work), may_ask = product_may_be_asked_for(machine, &b->work) && !b->is_open;
  bool is_plain = !b->computed[0] && !b->computed[1] && !b->is_open_sum && !b->is_open_width;
  sized.blocks.is_narrow = true;
  if (!is_plain || !(may_be_narrow || may_ask) || !choose_sizes(&sized, 1) || b->work.batch * sized.blocks.column_tasks < NARROW_TASKS)
    return;
  if (may_be_narrow)
    propose(&sized, out);
  sized.blocks.asks = may_ask && sized.terms < sized.k && sized.terms % ASKING_TERMS == 0;
  if (sized.blocks.asks)
    propose(&sized, out);
}
static bool choose_parts(const struct blocked *b, int64_t parts, struct blocked *sized) {
  *sized = *b;
  return (parts == 1 || (parts <= most_parts(b) && !has_rest(b))) && choose_sizes(sized, parts) && sized->blocks.row_tasks == (double)parts;
}
/* Whether other parts of the rows, or more wanted tasks, make the same tasks or better ones. */
static bool is_proposed_elsewhere(const struct blocked *b, const struct blocked *sized, int64_t parts) {
  struct blocked more;
  bool is_many = wants_fewer(b) && !has_fewer_tasks(sized, tasks_wanted(b->n->machine));
  return is_many || (has_fewer_tasks(sized, b->wanted) && choose_parts(b, parts * 2, &more));
}
/* The more parts of the rows, the more strips a task may have, and the fewer tasks copy the same rows. */
static void propose_parts_of_rows(const struct blocked *b, struct candidates *out) {
  struct blocked sized;
  for (int64_t parts = 1; parts <= b->wanted; parts *= 2)
    if (choose_parts(b, parts, &sized) && !is_proposed_elsewhere(b, &sized, parts))
      propose(&sized, out);
}
/* Beside rows that are copied the second factor may stay where it lies; else nothing is gained where a tile's terms are one block:
 * product_tile_cycles is of that. */
static void propose_in_place(const struct blocked *b, struct candidates *out) {
  struct blocked sized = *b;
  sized.blocks.in_place = true;
  if (b->computed[1] || *b->fuse || !product_may_stay(b->n->machine, &b->work, &b->blocks))
    return;
  if (b->blocks.copies_rows)
    propose_parts_of_rows(&sized, out);
  else if (choose_sizes(&sized, 1) && sized.terms < b->k)
    propose(&sized, out);
}
/* Each task of some columns copies all its rows: fewer do so less often. */
static void propose_fewer_tasks(const struct blocked *b, struct candidates *out) {
  struct blocked few = *b;
  few.wanted = tasks_fewest(b->n->machine);
  if (b->blocks.copies_rows && wants_fewer(&few))
    propose_parts_of_rows(&few, out);
}
/* Rows of a task, whole tiles, where their number is open: fewer, where they are copied and much of what a task may keep. */
static int64_t open_rows(const struct blocked *b) {
  int64_t rows = OPEN_ROWS, bytes = least(b->k, TERMS) * (int64_t)b->work.bytes;
  while (has_own_rows(b) && rows > b->tile * 8 && rows * bytes > bytes_max(b) / 2)
    rows /= 2;
  return divide_up(rows, b->tile) * b->tile;
}
/* Tiles of so many rows; where they do not go into them, and others may that do, none. */
static void propose_height(const struct blocked *b, int64_t height, bool takes_rests, struct candidates *out) {
  struct blocked t = *b;
  t.tile = height;
  if (t.is_open)
    t.m = open_rows(&t);
  if (has_rest(&t) && (t.blocks.copies_rows || (most_parts(&t) > 1 && !takes_rests)))
    return;
  if (!t.blocks.pairs) {
    propose_in_place(&t, out);
    propose_narrow(&t, out);
  }
  propose_parts_of_rows(&t, out);
  propose_fewer_tasks(&t, out);
}
static void propose_heights(const struct blocked *b, struct candidates *out) {
  for (const int64_t *height = heights_of(b); *height; height++)
    propose_height(b, *height, !has_few(b) || !height[1], out);
}
/* Rows of an open number that are fewer than the copy pays for: plain loops. Along the terms those are sums of vectors. */
static void propose_single(const struct blocked *b, struct candidates *out) {
  int64_t size = contraction_size(b->c, b->rows);
  if (size >= 0)
    vec_push(
      &out->items,
      ((struct candidate){
        .steps = "", .cycles = out->items.items[0].cycles, .size = (uint32_t)size, .below = b->is_along ? ROWS_COPIED : ROWS_COMPUTED}));
}
void propose_product_blocks(const struct nest *nest, const struct contraction *c, struct candidates *out) {
  struct contraction one;
  double turns;
  bool is_fused = fuse_terms(c, &one), has_turns = leave_turns(c, &one, &turns);
  struct blocked b = {.n = nest, .c = is_fused || has_turns ? &one : c, .fuse = "", .turns = "", .wanted = tasks_wanted(nest->machine)};
  if (!is_blocked(&b) || (is_fused && !may_be_fused(&b)))
    return;
  const struct axis_name names[] = {{b.rows, "m"}, {c->lanes, "n"}, {is_fused ? -1 : c->axis_count - 1, "k"}};
  b.words = axis_words_of(nest, c, "@", names, 3); /* `@`: where the number goes into words made of these */
  if (is_fused)
    b.fuse = arena_printf(nest->arena, "; fuse%s -> k@", axis_words_list(&b.words, c->par_count, c->axis_count));
  if (has_turns) {
    b.turns = axis_words_others(&b.words, c->par_count, c->axis_count);
    b.work.k *= turns;
  }
  if (b.is_open && (b.is_along || b.computed[1]))
    propose_single(&b, out);
  propose_heights(&b, out);
  if (may_have_pairs(nest, b.c) && b.k >= PAIR_TERMS && !has_turns) {
    pair_terms(&b);
    propose_heights(&b, out);
  }
}
