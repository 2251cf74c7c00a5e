/* Schedules: their text, and what they refuse. */
#include "tests/ir/schedule_kernels.h"

/* A product with the imaginary parts of its second factor. */
static const char imaginary[] =
  "kernel k(in a: f32[20,40], in b: c64[40,96], out c: f32[20,96]) { par i0 < 20 { par i1 < 96 { var v0: f32 = "
  "0:f32 red i2 < 40 { v0 = add(v0, mul(a[i0,i2], b.im[i2,i1])) } c[i0,i1] = v0 } } }";

/* Rows by their numbers. */
static const char picked[] = "kernel k(in a: i32[8,4], in b: f32[9,96], out c: f32[8,96]) { par i0 < 8 { par i1 < 96 { var v0: f32 = 0:f32 "
                             "red i2 < 4 { v0 = add(v0, b[max(min(cast.i64(a[i0,i2]), 8), 0),i1]) } c[i0,i1] = v0 } } }";

/* ---- text ---- */

static void printing_what_was_parsed_gives_the_text(void **state) {
  (void)state;
  static const char *const texts[] = {
    "",
    "name i0 i1 i2 -> m n k; fma; split n 32 -> no ni; order no m ni; split m 8 -> mo mi tail cut 4 2 1; "
    "sink mi ni under k in register; fetch b at k ahead 16; run no tasks; run mi unroll; run ni lanes",
    "fuse kh kc -> t; sink t co under n hb in result first; sink t co under h w in stack; order n h regroup; cut w at 1 55 -> wl w wr; "
    "run co lanes 64; fetch b27 at k ahead 1; fetch b at k ahead 1 over mo ni; stage a at no by k ni -> ak an; "
    "stage a computed at no by k -> ck; stage b at m by .0 k .12 -> b0 bk bl",
    "split k 2 -> kp kw tail kt cut 1; split m 8 -> mo mi tail mt cut 4 2 1",
    "split k 2 -> kp kw; stage b computed bf16 at no by kp kw -> bp bw; pair kw",
    "part k 4 -> po pi ps; join 2",
    "when n0 < 64: run i0 unroll\nelse: when n1 < 9: fma\nelse: run i0 tasks",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct arena arena;
    arena_init(&arena);
    struct schedule s = steps(texts[i], &arena);
    assert_string_equal(schedule_print(&s, &arena), texts[i]);
    arena_deinit(&arena);
  }
}

static void mistakes_are_told(void **state) {
  (void)state;
  static const char *const texts[] = {
    "glue m",
    "join",
    "join 0",
    "join m",
    "split m -> mo mi",
    "split m 0 -> mo mi",
    "split m 8 -> mo",
    "split m 8 4 -> mo mi",
    "name i0 i1 -> m",
    "run m",
    "run m sideways",
    "sink m under k",
    "sink m in stack",
    "fetch 3 at k ahead 1",
    "fetch b at k ahead 0",
    "fetch b at k ahead 1 over",
    "fetch b at k over m",
    "cut w -> a",
    "cut w at 1 -> a",
    "fuse m -> t",
    "order",
    "when n0 < 4: fma",
    "when m < 4: fma else: fma",
    "run m tasks }",
    "stage b at m by k",
    "stage b by k -> bk",
    "stage b at m by . k -> x y",
    "stage b computed bf61 at m by k -> x",
    "stage b bf16 at m by k -> x",
    "pair",
    "split k 2 -> kp kw kt",
    "split k 2 -> kp tail kt cut 1",
    "split k 2 -> kp kw tail kt",
    "split k 2 -> kp kw tail kt ku cut 1",
    "pair k n",
    "stage b at m by .k -> x",
    "stage b at m by .100 -> x",
    "order .0 m",
    "order a b c d e f g h i j l m n o p q r s",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct arena arena;
    arena_init(&arena);
    struct schedule s = {0};
    if (schedule_parse(texts[i], &arena, &s) != INVALID_ARGUMENT)
      fail_msg("%s is no schedule", texts[i]);
    arena_deinit(&arena);
  }
}

/* ---- refusals ---- */

#define NAMES "name i0 i1 i2 -> m n k; "
static const struct refusal {
  const char *kernel, *steps, *why;
} refusals[] = {
  {product, "run i3 tasks", "step 1, run i3 tasks: there is no loop i3"},
  {open_map, "fma", "step 1, fma: there is no sum of products"},
  {product, "run i2 lanes 1024", "not par"},
  {product, "run i2 tasks", "not par"},
  {product, "run i1 lanes", "into lanes"},
  {product, "run i1 unroll", "no constant extent"},
  {product, "run i0 unroll; run i0 tasks", "marked"},
  {product, "run i1 tasks", "outermost"},
  {product, "run i1 vectors 12", "power of two"},
  {product, "run i1 vectors", "power of two"},
  {product, "run i2 together 4", "not par"},
  {product, "run i0 together 40", "2 to 16 turns"},
  {product, "run i0 i1 vectors 16", "do not run alike"},
  {product, NAMES "order m k", "no perfect nest"},
  {product, NAMES "split n 7 -> no ni; order ni no", "hangs on one"},
  {product, NAMES "split k 8 -> ko kl; order kl ko", "only loops of par"},
  {product, NAMES "fuse m k -> t", "no perfect nest"},
  {product, NAMES "split n 7 -> no ni; fuse no ni -> t", "not rectangular"},
  {product, NAMES "cut n at 2000 -> l r", "inside of the range"},
  {product, NAMES "sink m n under k in register", "registers"},
  {product, NAMES "sink n m under k in stack", "in this order"},
  {product, NAMES "sink m under k in stack", "no loop k"},
  {product, NAMES "sink n under k in result", "no store of it as it is"},
  {product, NAMES "sink n under k in stack first", "in the result"},
  {product, NAMES "split n 8 -> k ni", "taken"},
  {product, NAMES "fetch c at k ahead 4", "nothing that moves"},
  {product, NAMES "fetch z at k ahead 4", "no such buffer"},
  {product, NAMES "fetch a at m ahead 1 over n j", "inside of loop n there is no loop j"},
  {product, NAMES "fetch a at k ahead 1 over n", "inside of loop k there is no loop n"},
  {product, NAMES "fetch b at m ahead 1 over n", "nothing that moves"},
  {picked, "fetch b at i1 ahead 1", "the place that is read is loaded"},
  {picked, "fetch b at i0 ahead 1 over i1", "the place that is read is loaded"},
  {product, NAMES "split n 1000 -> no ni; fetch b at no ahead 1 over k", "a turn would ask for"},
  {product, NAMES "cut k", "no test says"},
  {product, NAMES "cut n", "no sum"},
  {product, NAMES "stage b at m by k n -> x x", "taken"},
  {across_open, NAMES "order n m; stage b at n by k -> x", "the extent of loop k has no constant bound"},
  {product, NAMES "stage b at m by k -> bk", "moves with more loops"},
  {product, NAMES "stage b at k by n -> bn", "not one loop n"},
  {product, NAMES "stage d at m by n -> x", "loads nothing"},
  {flipped, "stage b computed at i1 by .0 i3 -> x y", "no dimension that is copied as a whole"},
  {product, NAMES "stage b computed bf16 at m by k n -> x y", "computes nothing of that dtype"},
  {product, NAMES "pair k", "no sum of two products that round once"},
  {product, NAMES "split k 2 -> kp kw; pair kw", "no sum of two products that round once"},
  {product, NAMES "fma; split k 4 -> kp kw; pair kw", "no sum of two products that round once"},
  {product, NAMES "fma; split m 2 -> mo mi; pair mi", "no sum of two products that round once"},
  {product, NAMES "fma; split k 2 -> kp kw; run kw unroll; pair kw", "is marked"},
  {imaginary, NAMES "stage b at m by k n -> x y", "complex"},
  {imaginary, NAMES "stage b computed at m by k n -> x y", "complex"},
  {flipped, "stage b at i1 by .3 i3 -> x y", "dimension .3 of that buffer is not copied as a whole"},
  {flipped, "stage b at i1 by .0 .0 i3 -> x y z", "dimension .0 of that buffer is not copied as a whole"},
  {flipped, "stage b at i0 by .0 i3 -> x y", "moves with more loops"},
  {turned, NAMES "stage b at m by .0 k -> x y", "dimension .0 of that buffer is not copied as a whole"},
  {fewer, NAMES "split n 48 -> ns ni; split ns 2 -> no nj; split m 4 -> mo mi; order no mo nj mi ni; stage a at mo by mi k -> x y",
   "loop ni is not known at loop mo"},
  {filter, "sink i2 under i4 in register", "no loop i4"},
  {open_map, "run i0 lanes 16", "into lanes"},
  {open_map, "when n3 < 4: fma\nelse: run i0 tasks", "no size n3"},
  {product, NAMES "part q 4 -> x y z", "no nest of par with loop q in it"},
  {product, NAMES "part n 4 -> x y z", "loop n is no loop of a sum"},
  {moments, "run i0 tasks; part i1 4 -> x y z", "marked"},
  {product, NAMES "part k 4 -> m y z", "taken"},
  {strange, "part i1 4 -> x y z", "no sum, product, minimum or maximum"},
  {strange, "part i2 4 -> x y z", "more happens than numbers"},
  {checked, "part i1 4 -> x y z", "more happens than numbers"},
  {checked, "sink i0 under i1 in register; run i0 unroll", "check"},
  {product, "join 1", "one nest alone"},
  {handed_on, "join 3", "does not begin with 3 loops of par"},
  {handed_on, "run i4 lanes; join 2", "does not begin with 2 loops of par"},
  {handed_on, "split i8 2 -> mo mi; join 2", "have not the same extent"},
  {backward, "join 1", "a turn may use of buffer c what another one stores"},
  {phases_meet, "join 2", "a turn may use of buffer b what another one stores"},
  {phases_read, "join 2", "a turn may use of buffer b what another one stores"},
  {uneven, "join 1", "loops i0 and i2 have not the same extent"},
  {of_images, "join 2", "loop i1 has no constant extent"},
};

static void steps_that_do_not_apply_say_why(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    struct arena arena;
    arena_init(&arena);
    struct schedule s = steps(refusals[i].steps, &arena);
    struct kernel *scheduled = NULL;
    if (schedule_apply(parsed(refusals[i].kernel, &arena), &s, &arena, &scheduled) != FAILED_PRECONDITION || scheduled ||
        !strstr(status_text(), refusals[i].why))
      fail_msg("%s: %s", refusals[i].steps, scheduled ? kernel_print(scheduled, &arena) : status_text());
    arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(printing_what_was_parsed_gives_the_text),
    cmocka_unit_test(mistakes_are_told),
    cmocka_unit_test(steps_that_do_not_apply_say_why),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
