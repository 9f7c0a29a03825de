/* The contract between polyop and a kernel, in C.
 *
 * It names no framework and no Python. A library built against version N of this file works
 * with every polyop whose POLYOP_ABI_VERSION is at least N: fields and functions are only
 * added at the end of their struct, and `size` tells how much of it the caller has.
 * csrc/abi_layout.cc freezes the layout.
 */
#ifndef POLYOP_ABI_H
#define POLYOP_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define POLYOP_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* Read by polyop when it opens a library: which version of this file it was built against. */
extern const int polyop_aot_abi_version __attribute__((weak, visibility("default")));
const int polyop_aot_abi_version = POLYOP_ABI_VERSION;

/* A kernel.
 *
 * nparam   how many pointers `params` holds: inputs, then outputs, then workspaces.
 * params   data pointers. Owned by the caller and valid during the call. Every tensor is dense
 *          and row-major; an input is not to be written unless the schema says Tensor(a!).
 *          An optional input that was not given is a null pointer. The pointer of a tensor
 *          without elements is not null, and must not be read.
 * ndims    number of dimensions of each input and output (not of the workspaces).
 * shapes   sizes, likewise; for a tensor of 0 dimensions the pointer is valid and not read.
 * dtypes   names, likewise: bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16
 *          bfloat16 float32 float64 complex64 complex128 float8_e4m3fn ...; "" for an optional
 *          input that was not given. A null pointer ends the list.
 * stream   the cudaStream_t that the caller's framework is using, or null on the CPU.
 * extra    a polyop_extra: attributes, workspaces, kernel data and the error text.
 *
 * Returns 0 for success; anything else fails the call and is shown to the user with the text
 * given to polyop_fail. Called without Python's lock and possibly from several threads at once.
 */
typedef int (*polyop_kernel)(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void* extra);

enum polyop_attribute_kind {
  POLYOP_NONE = 0,  /* given as None, or an empty list */
  POLYOP_BOOL = 1,  /* in `ints` */
  POLYOP_INT = 2,   /* in `ints` */
  POLYOP_FLOAT = 3, /* in `floats` */
  POLYOP_STRING = 4 /* in `strings` */
};

/* The value of an attribute. All pointers belong to polyop and live as long as the extra.
 * depth 0 is a single value (count 1), 1 a list, 2 a list of lists: `rows` lengths in
 * `row_lengths`, their items one after another. */
struct polyop_attribute {
  int32_t kind;
  int32_t depth;
  size_t count;
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  size_t rows;
  const size_t* row_lengths;
};

struct polyop_extra;

/* What polyop does for a kernel. Owned by polyop, valid as long as the process. */
struct polyop_extra_functions {
  /* Fill `value`; 0, or 1 when there is no attribute of that name. Any thread. */
  int (*attribute)(const struct polyop_extra*, const char* name, struct polyop_attribute* value);
  /* Ask for workspaces of so many bytes; only in <Func>Init. The sizes are copied. */
  void (*set_workspaces)(struct polyop_extra*, const size_t* bytes, size_t count);
  /* The sizes asked for; the pointer belongs to polyop. */
  size_t (*workspaces)(const struct polyop_extra*, const size_t** bytes);
  /* Hand over state of the author's; `destroy` is called once, on any thread. */
  void (*set_kernel_data)(struct polyop_extra*, void* data, void (*destroy)(void*));
  void* (*kernel_data)(const struct polyop_extra*);
  /* Give the text of the error that the calling thread is about to return. Copied. */
  void (*set_error)(struct polyop_extra*, const char* text);
};

/* What `extra` points to. Created by polyop for one operator with one set of attribute values
 * and input shapes; lives as long as the operator can be called with them. */
struct polyop_extra {
  uint32_t abi_version;
  uint32_t size; /* of this struct, in bytes */
  const struct polyop_extra_functions* functions;
  void* state; /* polyop's own */
};

/* Returns 1 and keeps `text` as the error: `return polyop_fail(extra, "needs a square");` */
static inline int polyop_fail(void* extra, const char* text) {
  struct polyop_extra* self = (struct polyop_extra*)extra;
  self->functions->set_error(self, text);
  return 1;
}

/* Returns 1 with the error "<what> <name>". */
static inline int polyop_fail_naming(void* extra, const char* what, const char* name) {
  char text[160];
  text[0] = 0;
  strncat(text, what, sizeof text - 1);
  strncat(text, " ", sizeof text - strlen(text) - 1);
  strncat(text, name, sizeof text - strlen(text) - 1);
  return polyop_fail(extra, text);
}

/* Reads a float (or int) attribute; returns 0, or 1 with the error set. */
static inline int polyop_get_float(void* extra, const char* name, double* value) {
  struct polyop_extra* self = (struct polyop_extra*)extra;
  struct polyop_attribute found;
  memset(&found, 0, sizeof found);
  if (self->functions->attribute(self, name, &found)) {
    return polyop_fail_naming(extra, "there is no attribute called", name);
  }
  if (found.depth == 0 && found.kind == POLYOP_FLOAT) {
    *value = found.floats[0];
  } else if (found.depth == 0 && found.kind == POLYOP_INT) {
    *value = (double)found.ints[0];
  } else {
    return polyop_fail_naming(extra, "not a number: the attribute", name);
  }
  return 0;
}

/* Reads an int or bool attribute; returns 0, or 1 with the error set. */
static inline int polyop_get_int(void* extra, const char* name, int64_t* value) {
  struct polyop_extra* self = (struct polyop_extra*)extra;
  struct polyop_attribute found;
  memset(&found, 0, sizeof found);
  if (self->functions->attribute(self, name, &found)) {
    return polyop_fail_naming(extra, "there is no attribute called", name);
  }
  if (found.depth != 0 || (found.kind != POLYOP_INT && found.kind != POLYOP_BOOL)) {
    return polyop_fail_naming(extra, "not an integer: the attribute", name);
  }
  *value = found.ints[0];
  return 0;
}

#ifdef __cplusplus
}
#endif
#endif
