/* The contract between polyop and a C++ operator module, in C.
 *
 * A module exports polyop_module(). polyop calls it with a table of its own functions, and it returns the
 * table of the module's functions. The module uses tensors, memory and other operators through polyop's
 * functions. So building it needs no framework and no Python, and one binary serves all of them. Fields are
 * only added at the end of their struct. csrc/abi_layout.cc freezes the layout.
 */
#ifndef POLYOP_MODULE_ABI_H
#define POLYOP_MODULE_ABI_H

#include <stddef.h>
#include <stdint.h>

#define POLYOP_MODULE_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor. It belongs to polyop and is counted by retain() and release(). Modules only read the fields. */
typedef struct polyop_tensor {
  int32_t type_id;     /* the dtype, as MindSpore's TypeId */
  int32_t device_type; /* DLPack's device type: 1 is the CPU, 2 CUDA */
  int32_t device_index;
  int32_t ndim;
  const int64_t* shape;
  const int64_t* strides; /* in elements */
  int64_t offset;         /* in elements, from the start of the memory; data() includes it */
  int64_t numel;
  int32_t itemsize;       /* bytes */
  int32_t contiguous;     /* dense and row-major */
  int32_t needs_gradient; /* not 0: it requires a gradient */
} polyop_tensor;

enum polyop_value_kind {
  POLYOP_VALUE_NONE = 0,
  POLYOP_VALUE_BOOL = 1,
  POLYOP_VALUE_INT = 2,
  POLYOP_VALUE_FLOAT = 3,
  POLYOP_VALUE_STRING = 4, /* `count` bytes at `text`, followed by a zero byte */
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

/* One call of a Function's Forward, which polyop keeps until Backward. `state` belongs to the module. polyop
 * reads the arrays during record() only. An input is null when the argument is not a tensor. */
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
  polyop_tensor* const* dirty; /* inputs that Forward has written */
  int32_t materialize;         /* not 0: Backward receives zeros for absent gradients */
  int32_t unused;
  /* The saved tensors: their number; a new reference to tensor i, or null; replaces tensor i. */
  size_t (*saved_count)(void* state);
  polyop_tensor* (*saved)(void* state, size_t i);
  void (*set_saved)(void* state, size_t i, polyop_tensor* tensor);
  /* Runs Backward. `wanted` tells for each input whether its gradient is used. The caller owns the results.
   * `returned` receives the number of gradients that Backward returned; at most `room` of them are stored. */
  int (*backward)(void* state, polyop_tensor* const* gradients, size_t count, const uint8_t* wanted,
                  polyop_tensor** results, size_t room, size_t* returned);
} polyop_node;

/* The functions that polyop provides to a module. Those that return int and can fail return 0 for success;
 * otherwise error() returns the reason, for the calling thread. They may only be called inside a call of the
 * module. */
typedef struct polyop_module_functions {
  uint32_t version;
  uint32_t size; /* of this struct, in bytes */
  void (*retain)(polyop_tensor* tensor);
  void (*release)(polyop_tensor* tensor);
  /* Creates a dense tensor with uninitialised memory, on the device of the call. */
  int (*empty)(int32_t type_id, int32_t ndim, const int64_t* shape, polyop_tensor** result);
  /* Creates a view of a tensor's memory. Strides and offset are in elements; null strides: dense. */
  int (*view)(polyop_tensor* tensor, int32_t ndim, const int64_t* shape, const int64_t* strides,
              int64_t offset, polyop_tensor** result);
  /* Returns a new reference to the tensor itself when it is dense, else to a dense copy. */
  int (*contiguous)(polyop_tensor* tensor, polyop_tensor** result);
  /* Gets the address of the first element. Fails while shapes are derived, because there is no data then. */
  int (*data)(polyop_tensor* tensor, void** data);
  /* Copies `bytes` bytes from the module's memory into a dense tensor; they must be all of it. */
  int (*fill)(polyop_tensor* tensor, const void* data, size_t bytes);
  /* Runs an operator of a provider. `outputs` 0: the arguments are in the order of its prototype. Otherwise
   * they are its inputs, followed by `outputs` outputs. */
  int (*launch)(const char* name, const polyop_value* arguments, size_t count, size_t outputs);
  /* Announces that a kernel of the module runs next. `run` becomes 0 when it must not run, because shapes are
   * derived; then end() is not called either. `workspace` receives memory of `workspace_bytes` that is valid
   * until end(). */
  int (*begin)(const char* name, polyop_tensor* const* inputs, size_t input_count,
               polyop_tensor* const* outputs, size_t output_count, size_t workspace_bytes, void** workspace,
               int32_t* run);
  /* Announces that the kernel has ended. */
  void (*end)(void);
  /* Returns the stream of the caller's framework; null on the CPU. */
  void* (*stream)(void);
  /* Whether the next call of Forward must be recorded. Call it once before each call of Forward. */
  int (*recording)(void);
  /* Records a call of Forward. polyop owns the node's state from now on. */
  int (*record)(const polyop_node* node);
  /* Whether shapes are derived, so that tensors have no data. */
  int (*deriving)(void);
  /* Returns the text of the last failure on this thread. */
  const char* (*error)(void);
  /* Sets the text of the failure that is about to be returned. */
  void (*fail)(const char* text);
  /* Declares that Forward has written a tensor in place. Fails for a read-only one. */
  int (*wrote)(polyop_tensor* tensor);
  /* Declares that a Forward has ended without record(), after recording() returned 1 for it. */
  void (*left)(void);
} polyop_module_functions;

/* A bound function. `call` writes one result. It returns 0, or 1 after passing a text to fail(). */
typedef struct polyop_function {
  const char* name;
  const char* schema; /* "(Tensor x, int n=2) -> Tensor" */
  const char* doc;
  const void* target; /* belongs to the module */
  int (*call)(const struct polyop_function* self, const polyop_value* arguments, size_t count,
              polyop_value* result, void (*fail)(const char* text));
  void (*free_result)(polyop_value* result);
} polyop_function;

typedef struct polyop_module_table {
  uint32_t version; /* the POLYOP_MODULE_VERSION that the module was built with */
  uint32_t unused;
  const char* name;
  size_t count;
  const polyop_function* functions;
  const char* problem; /* the reason why the module cannot be used, or null */
} polyop_module_table;

/* The type of the function that a module exports as "polyop_module". */
typedef const polyop_module_table* (*polyop_module_entry)(const polyop_module_functions* functions);

#ifdef __cplusplus
}
#endif
#endif
