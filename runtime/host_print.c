/* host_print.c: Assert and Print: what a graph says to people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/element_text.h"
#include "runtime/host.h"

#define TEXT_MAX 1500 /* an error's text is cut at 2047 bytes, and the node's name must fit too */

struct text {
  char *data;
  size_t size, capacity;
};

static void text_add(struct text *text, const char *more, size_t size) {
  if (text->size + size + 1 > text->capacity) {
    size_t capacity = (text->size + size + 1) * 2;
    char *grown = realloc(text->data, capacity);
    if (!grown)
      return;
    text->data = grown;
    text->capacity = capacity;
  }
  memcpy(text->data + text->size, more, size);
  text->size += size;
  text->data[text->size] = 0;
}

/* "[1 2 3...]" as TensorFlow summarizes: the first `most` elements. */
static void text_tensor(struct text *text, const struct tensor *tensor, int64_t most) {
  int64_t count = most >= 0 && tensor->count > most ? most : tensor->count;
  if (tensor->shape.rank > 0)
    text_add(text, "[", 1);
  for (int64_t i = 0; i < count; i++) {
    char element[64];
    if (i)
      text_add(text, " ", 1);
    if (tensor->dtype == DTYPE_STRING) {
      const struct string_view *view = (const struct string_view *)tensor->data + i;
      text_add(text, view->data, view->size);
    } else {
      element_text(tensor->dtype, tensor->data, i, element, sizeof element);
      text_add(text, element, strlen(element));
    }
  }
  if (count < tensor->count)
    text_add(text, "...", 3);
  if (tensor->shape.rank > 0)
    text_add(text, "]", 1);
}

/* inputs: condition, data...; attr summarize */
status host_assert(struct host_call *call) {
  if (call->inputs[0].count > 0 && *(const bool *)call->inputs[0].data)
    return OK;
  struct text text = { 0 };
  for (uint32_t i = 1; i < call->input_count; i++) {
    text_add(&text, " [", i > 1 ? 2 : 0);
    if (i == 1)
      text_add(&text, "[", 1);
    text_tensor(&text, &call->inputs[i], host_attr_int(call, "summarize", 3));
    text_add(&text, "]", 1);
  }
  if (text.size > TEXT_MAX)
    text.data[TEXT_MAX] = 0;
  status result = fail(INVALID_ARGUMENT, "assertion failed: %s", text.data ? text.data : "");
  free(text.data);
  return result;
}

/* Print. inputs: the value passed through, data...; attrs message, first_n (-1: always), summarize. */
status host_print(struct host_call *call) {
  struct text text = { 0 };
  struct string_view message = host_attr_string(call, "message", "");
  text_add(&text, message.data, message.size);
  for (uint32_t i = 1; i < call->input_count; i++) {
    text_add(&text, "[", 1);
    text_tensor(&text, &call->inputs[i], host_attr_int(call, "summarize", 3));
    text_add(&text, "]", 1);
  }
  fprintf(stderr, "%s\n", text.data ? text.data : "");
  free(text.data);
  return call->output_count ? host_keep_input(call, 0, &call->outputs[0]) : OK;
}

/* PrintV2. inputs: one string; attrs output_stream ("stderr", "stdout", "log(info)" ...), end. */
status host_print_text(struct host_call *call) {
  struct string_view text = host_scalar_string(&call->inputs[0]);
  struct string_view stream = host_attr_string(call, "output_stream", "stderr");
  struct string_view end = host_attr_string(call, "end", "\n");
  FILE *out = stream.size == 6 && memcmp(stream.data, "stdout", 6) == 0 ? stdout : stderr;
  flockfile(out);
  fwrite(text.data, 1, text.size, out);
  fwrite(end.data, 1, end.size, out);
  funlockfile(out);
  fflush(out);
  return OK;
}
