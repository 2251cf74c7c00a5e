/* host_print.c: Assert, Print, PrintV2, StringFormat and Timestamp: what a graph says to people. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/host/host.h"
#include "runtime/memory/container.h"
#include "runtime/text/string_output.h"
#include "runtime/value/tensor_summary.h"

#define TEXT_MAX 1500 /* an error's text is cut at 2047 bytes, and the node's name must fit too */

/* inputs: condition, data...; attr summarize */
status host_assert(struct host_call *call) {
  if (call->inputs[0].count > 0 && *(const bool *)call->inputs[0].data)
    return OK;
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out)
    return fail(INVALID_ARGUMENT, "assertion failed");
  for (uint32_t i = 1; i < call->input_count; i++) {
    fputs(i > 1 ? " [" : "[", out);
    tensor_summary(out, &call->inputs[i], host_attr_int(call, "summarize", 3));
    fputc(']', out);
  }
  fclose(out);
  if (size > TEXT_MAX)
    text[TEXT_MAX] = 0;
  status result = fail(INVALID_ARGUMENT, "assertion failed: %s", text);
  free(text);
  return result;
}

/* How often a Print has printed. */
struct print_count {
  struct resource resource;
  atomic_llong done;
};
static status print_count_init(struct resource *resource, void *argument) {
  (void)argument;
  atomic_init(&((struct print_count *)resource)->done, 0);
  return OK;
}
static void print_count_destroy(struct resource *resource) { (void)resource; }
static const struct resource_maker print_count_maker = {"print", sizeof(struct print_count), print_count_init, print_count_destroy};

static status is_enough(struct host_call *call, bool *out) {
  int64_t first_n = host_attr_int(call, "first_n", -1);
  struct resource *count;
  bool is_new;
  *out = false;
  if (first_n < 0)
    return OK;
  TRY(host_get_resource(call, &print_count_maker, NULL, &is_new, &count));
  *out = atomic_fetch_add(&((struct print_count *)count)->done, 1) >= first_n;
  return OK;
}

/* Print. inputs: the value passed through, data...; attrs message, first_n (-1: always), summarize. */
status host_print(struct host_call *call) {
  struct string_view message = host_attr_string(call, "message", "");
  bool enough;
  TRY(is_enough(call, &enough));
  if (!enough) {
    flockfile(stderr);
    fwrite(message.data, 1, message.size, stderr);
    for (uint32_t i = 1; i < call->input_count; i++) {
      fputc('[', stderr);
      tensor_summary(stderr, &call->inputs[i], host_attr_int(call, "summarize", 3));
      fputc(']', stderr);
    }
    fputc('\n', stderr);
    funlockfile(stderr);
  }
  return call->output_count ? host_keep_input(call, 0, &call->outputs[0]) : OK;
}

/* PrintV2. inputs: one string; attrs output_stream ("stderr", "stdout", "file://PATH", "log(info)" ...), end. */
status host_print_text(struct host_call *call) {
  struct string_view text = host_scalar_string(&call->inputs[0]);
  struct string_view stream = host_attr_string(call, "output_stream", "stderr");
  struct string_view end = host_attr_string(call, "end", "\n");
  FILE *out = stream.size == 6 && memcmp(stream.data, "stdout", 6) == 0 ? stdout : stderr;
  if (stream.size > 7 && memcmp(stream.data, "file://", 7) == 0) {
    char path[4096];
    snprintf(path, sizeof path, "%.*s", (int)(stream.size - 7), stream.data + 7);
    out = fopen(path, "ae");
    if (!out)
      return fail(errno == ENOENT ? NOT_FOUND : INVALID_ARGUMENT, "'%s' cannot be opened to print to", path);
  }
  flockfile(out);
  fwrite(text.data, 1, text.size, out);
  fwrite(end.data, 1, end.size, out);
  funlockfile(out);
  fflush(out);
  if (out != stdout && out != stderr)
    fclose(out);
  return OK;
}

/* inputs: any tensors, put one after the other where the template has its placeholder. */
status host_string_format(struct host_call *call) {
  struct string_view template = host_attr_string(call, "template", "%s"), holder = host_attr_string(call, "placeholder", "%s");
  char *text = NULL;
  size_t size = 0;
  struct string_output out;
  FILE *file = open_memstream(&text, &size);
  if (!file)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0;; i++) {
    const char *found = holder.size ? memmem(template.data, template.size, holder.data, holder.size) : NULL;
    if (!found || i == call->input_count)
      break;
    size_t before = (size_t)(found - template.data);
    fwrite(template.data, 1, before, file);
    tensor_summary_nested(file, &call->inputs[i], host_attr_int(call, "summarize", 3));
    template.data += before + holder.size;
    template.size -= before + holder.size;
  }
  fwrite(template.data, 1, template.size, file);
  fclose(file);
  status result = string_output_begin(&out, &(struct shape){0}, &call->outputs[0]);
  if (result == OK) {
    string_output_put(&out, text, size);
    result = string_output_end(&out);
  }
  free(text);
  return result;
}

/* Seconds since 1970. */
status host_timestamp(struct host_call *call) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  TRY(host_make_output(call, 0, DTYPE_DOUBLE, &(struct shape){0}));
  *(double *)call->outputs[0]->data = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
  return OK;
}

status host_not_fed(struct host_call *call) {
  return fail(INVALID_ARGUMENT, "You must feed a value for placeholder tensor '%s' with dtype %s",
              program_text(call->program, call->instr->node), dtype_name((enum dtype)host_attr_int(call, "dtype", 0)));
}

status host_refuse_fetch(struct host_call *call) {
  return fail(UNIMPLEMENTED, "a %s cannot be fetched", dtype_name(call->inputs[0].dtype));
}
