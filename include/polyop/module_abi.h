/* The contract between polyop and a C++ operator module, in C.
 *
 * A module exports polyop_module(), which gives the table of its functions. It reaches tensors,
 * memory and other operators through the functions that polyop hands over there, so it needs no
 * framework and no Python to be built, and one binary serves them all. Fields are only added at
 * the end of their struct. csrc/abi_layout.cc freezes the layout.
 */
#ifndef POLYOP_MODULE_ABI_H
#define POLYOP_MODULE_ABI_H

#include <stddef.h>
#include <stdint.h>

#define POLYOP_MODULE_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor: polyop's object, counted by retain() and release(). The fields are for reading. */
typedef struct polyop_tensor {
  int32_t type_id;     /* MindSpore's number of the dtype */
  int32_t device_type; /* DLPack's: 1 is the CPU, 2 CUDA */
  int32_t device_index;
  int32_t ndim;
  const int64_t* shape;
  const int64_t* strides; /* in elements */
  int64_t offset;         /* elements from the start of the memory; data() has it added */
  int64_t numel;
  int32_t itemsize;       /* bytes */
  int32_t contiguous;     /* dense and row-major */
  int32_t needs_gradient; /* a gradient of it will be asked for */
} polyop_tensor;

enum polyop_value_kind {
  POLYOP_VALUE_NONE = 0,
  POLYOP_VALUE_BOOL = 1,
  POLYOP_VALUE_INT = 2,
  POLYOP_VALUE_FLOAT = 3,
  POLYOP_VALUE_STRING = 4, /* `count` bytes at `text`, a zero after them */
  POLYOP_VALUE_TENSOR = 5, /* borrowed in arguments, owned in results; null: an undefined tensor */
  POLYOP_VALUE_LIST = 6    /* `count` values at `items` */
};

/* An argument or a result. */
typedef struct polyop_value {
  int32_t kind;
  int32_t unused;
  size_t count;
  union {
    int64_t integer; /* also for a bool */
    double real;
    const char* text;
    polyop_tensor* tensor;
    struct polyop_value* items;
  } as;
} polyop_value;

/* One call of a Function's Forward, kept until its Backward. `state` is the module's. The arrays
 * are read during record() only; an input is null where the argument is no tensor. */
typedef struct polyop_node {
  const char* name;
  void* state;
  void (*destroy)(void* state);
  size_t input_count;
  polyop_tensor* const* inputs;
  size_t output_count;
  polyop_tensor* const* outputs;
  const uint8_t* non_differentiable; /* one per output */
  size_t dirty_count;
  polyop_tensor* const* dirty; /* inputs that Forward has changed */
  int32_t materialize;         /* absent output gradients are zeros */
  int32_t unused;
  /* The saved tensors: so many; a reference to number i (or null); put another in its place. */
  size_t (*saved_count)(void* state);
  polyop_tensor* (*saved)(void* state, size_t i);
  void (*set_saved)(void* state, size_t i, polyop_tensor* tensor);
  /* Run Backward. `wanted` says for each input whether its gradient is used. Each result is owned
   * by the caller; `returned` is how many Backward gave, of which at most `room` are stored. */
  int (*backward)(void* state, polyop_tensor* const* gradients, size_t count, const uint8_t* wanted,
                  polyop_tensor** results, size_t room, size_t* returned);
} polyop_node;

/* What polyop does for a module. A function that returns int gives 0 for success; otherwise
 * error() has the reason, for the calling thread. Only to be called inside a call of the module. */
typedef struct polyop_module_functions {
  uint32_t version;
  uint32_t size; /* of this struct, in bytes */
  void (*retain)(polyop_tensor* tensor);
  void (*release)(polyop_tensor* tensor);
  /* A dense, uninitialised tensor on the device of the call. */
  int (*empty)(int32_t type_id, int32_t ndim, const int64_t* shape, polyop_tensor** made);
  /* Another view of a tensor's memory; strides and offset in elements. */
  int (*view)(polyop_tensor* tensor, int32_t ndim, const int64_t* shape, const int64_t* strides,
              int64_t offset, polyop_tensor** made);
  /* The tensor itself where it is dense, else a dense copy. */
  int (*contiguous)(polyop_tensor* tensor, polyop_tensor** made);
  /* The address of the first element. Fails while shapes are derived: there is no data then. */
  int (*data)(polyop_tensor* tensor, void** data);
  /* Copy so many bytes of the module's memory into a dense tensor. */
  int (*fill)(polyop_tensor* tensor, const void* data, size_t bytes);
  /* Run an operator of a provider: arguments in its order, or its inputs, then `outputs` outputs. */
  int (*launch)(const char* name, const polyop_value* arguments, size_t count, size_t outputs);
  /* A kernel of the module's own is about to run. `run` becomes 0 where it must not, as shapes are
   * being derived. `workspace` bytes are there until end(). */
  int (*begin)(const char* name, polyop_tensor* const* inputs, size_t input_count,
               polyop_tensor* const* outputs, size_t output_count, size_t workspace_bytes, void** workspace,
               int32_t* run);
  void (*end)(void);
  /* The stream of the caller's framework; null on the CPU. */
  void* (*stream)(void);
  /* Whether record() is wanted; asked before each call of Forward. */
  int (*recording)(void);
  /* Keep a node: polyop owns its state from now on. */
  int (*record)(const polyop_node* node);
  /* Whether shapes are being derived, so that there is no data. */
  int (*deriving)(void);
  const char* (*error)(void);
  /* Give the text of the failure that is about to be returned. */
  void (*fail)(const char* text);
  /* Forward says that it has changed a tensor in place. Fails for a read-only one. */
  int (*wrote)(polyop_tensor* tensor);
  /* A Forward that recording() was asked for has ended without record(). */
  void (*left)(void);
} polyop_module_functions;

/* A bound function. `call` writes one result; it returns 0, or 1 with the text given to fail(). */
typedef struct polyop_function {
  const char* name;
  const char* schema; /* "(Tensor x, int n=2) -> Tensor" */
  const char* doc;
  const void* target; /* the module's own */
  int (*call)(const struct polyop_function* self, const polyop_value* arguments, size_t count,
              polyop_value* result, void (*fail)(const char* text));
  void (*free_result)(polyop_value* result);
} polyop_function;

typedef struct polyop_module_table {
  uint32_t version; /* POLYOP_MODULE_VERSION of this file as the module saw it */
  uint32_t unused;
  const char* name;
  size_t count;
  const polyop_function* functions;
  const char* problem; /* why the module cannot be used, or null */
} polyop_module_table;

/* What a module exports under the name "polyop_module". */
typedef const polyop_module_table* (*polyop_module_entry)(const polyop_module_functions* functions);

#ifdef __cplusplus
}
#endif
#endif
