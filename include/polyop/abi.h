/* The contract between polyop and a kernel, in C.
 *
 * It depends on no framework and not on Python. A library built against version N of this file works with
 * every polyop whose POLYOP_ABI_VERSION is at least N: fields and functions are only added at the end of
 * their struct, and `size` tells how much of the struct this polyop has. csrc/abi_layout.cc freezes the
 * layout.
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
 * nparam   the number of pointers in `params`: inputs, then outputs, then workspaces.
 * params   data pointers, which belong to the caller and are valid during the call. Every tensor is dense
 *          and row-major. The kernel must not write an input, unless the schema says Tensor(a!). The
 *          pointer of an absent optional input is null. The pointer of a tensor without elements is not
 *          null, and must not be read.
 * ndims    the number of dimensions of each input and output; workspaces have no entry.
 * shapes   the sizes of each input and output. For a tensor of 0 dimensions the pointer is valid, but must
 *          not be read.
 * dtypes   the dtype of each input and output: bool int8 int16 int32 int64 uint8 uint16 uint32 uint64
 *          float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn ...; "" for an absent
 *          optional input. A null pointer ends the list.
 * stream   the cudaStream_t or the cl_command_queue that the caller's framework is using, or null on the CPU.
 * extra    a polyop_extra: attributes, workspaces, kernel data and the error text.
 *
 * Returns 0 for success. Any other value fails the call; the user sees it with the text passed to
 * polyop_fail. A kernel is called without Python's lock, and several threads may call it at the same time.
 */
typedef int (*polyop_kernel)(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                             void* stream, void* extra);

/* What `params` has for each tensor of a kernel for OpenCL, in place of a data pointer: the cl_mem, and where
 * the first element is in it, in bytes. `memory` is null for a tensor without elements. The kernel only
 * enqueues commands; in a queue that is out of order, with a barrier between those that depend on one
 * another. It has no workspaces. */
struct polyop_opencl_memory {
  void* memory;
  int64_t offset;
};

enum polyop_attribute_kind {
  POLYOP_NONE = 0,  /* None, or an empty list */
  POLYOP_BOOL = 1,  /* in `ints` */
  POLYOP_INT = 2,   /* in `ints` */
  POLYOP_FLOAT = 3, /* in `floats` */
  POLYOP_STRING = 4 /* in `strings` */
};

/* The value of an attribute. All pointers belong to polyop and live as long as the polyop_extra.
 *
 * depth 0: a single value, `count` is 1
 * depth 1: a list of `count` items
 * depth 2: a list of `rows` lists with their lengths in `row_lengths`; `count` items, one list after another
 */
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

/* The functions that polyop provides to a kernel. The struct is valid as long as the process. */
struct polyop_extra_functions {
  /* Fills in `value`. Returns 0, or 1 when there is no attribute of that name. Any thread may call it. */
  int (*attribute)(const struct polyop_extra*, const char* name, struct polyop_attribute* value);
  /* Requests `count` workspaces of these sizes. Only <Func>Init may call it. The sizes are copied. */
  void (*set_workspaces)(struct polyop_extra*, const size_t* bytes, size_t count);
  /* Returns the number of requested workspaces; `bytes` receives their sizes, which belong to polyop. */
  size_t (*workspaces)(const struct polyop_extra*, const size_t** bytes);
  /* Stores the kernel's own state. polyop calls `destroy` for it once, on any thread. */
  void (*set_kernel_data)(struct polyop_extra*, void* data, void (*destroy)(void*));
  void* (*kernel_data)(const struct polyop_extra*);
  /* Sets the text of the error that the calling thread is about to return. The text is copied. */
  void (*set_error)(struct polyop_extra*, const char* text);
};

/* The struct behind `extra`. polyop creates one for an operator with one set of attribute values and input
 * shapes. It lives as long as the operator can be called with them. */
struct polyop_extra {
  uint32_t abi_version;
  uint32_t size; /* of this struct, in bytes */
  const struct polyop_extra_functions* functions;
  void* state; /* polyop's own */
};

/* Sets the text of the error and returns 1: `return polyop_fail(extra, "needs a square");` */
static inline int polyop_fail(void* extra, const char* text) {
  struct polyop_extra* self = (struct polyop_extra*)extra;
  self->functions->set_error(self, text);
  return 1;
}

/* Sets the error "<what> <name>" and returns 1. */
static inline int polyop_fail_naming(void* extra, const char* what, const char* name) {
  char text[160];
  text[0] = 0;
  strncat(text, what, sizeof text - 1);
  strncat(text, " ", sizeof text - strlen(text) - 1);
  strncat(text, name, sizeof text - strlen(text) - 1);
  return polyop_fail(extra, text);
}

/* Reads a float or int attribute. Returns 0, or 1 with the error set. */
static inline int polyop_get_float(void* extra, const char* name, double* value) {
  struct polyop_extra* self = (struct polyop_extra*)extra;
  struct polyop_attribute attribute;
  memset(&attribute, 0, sizeof attribute);
  if (self->functions->attribute(self, name, &attribute)) {
    return polyop_fail_naming(extra, "there is no attribute called", name);
  }
  if (attribute.depth == 0 && attribute.kind == POLYOP_FLOAT) {
    *value = attribute.floats[0];
  } else if (attribute.depth == 0 && attribute.kind == POLYOP_INT) {
    *value = (double)attribute.ints[0];
  } else {
    return polyop_fail_naming(extra, "not a number: the attribute", name);
  }
  return 0;
}

/* Reads an int or bool attribute. Returns 0, or 1 with the error set. */
static inline int polyop_get_int(void* extra, const char* name, int64_t* value) {
  struct polyop_extra* self = (struct polyop_extra*)extra;
  struct polyop_attribute attribute;
  memset(&attribute, 0, sizeof attribute);
  if (self->functions->attribute(self, name, &attribute)) {
    return polyop_fail_naming(extra, "there is no attribute called", name);
  }
  if (attribute.depth != 0 || (attribute.kind != POLYOP_INT && attribute.kind != POLYOP_BOOL)) {
    return polyop_fail_naming(extra, "not an integer: the attribute", name);
  }
  *value = attribute.ints[0];
  return 0;
}

#ifdef __cplusplus
}
#endif
#endif
