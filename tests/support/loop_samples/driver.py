"""Kernels that a program in C calls, without Python: under a sanitiser, or on an emulated processor.

The program reads the inputs of all calls from one file, and writes all tensors to another as the calls leave
them. Memory of a tensor is as long as the tensor, to the byte.
"""

import json
from typing import NamedTuple

import numpy as np

TENSORS, AXES, ATTRIBUTES = 16, 4, 4

TEXT = r"""
#define POLYOP_GRAIN 1 /* every loop that may have threads has them */
%(kernels)s
#ifdef LOOPS_POOL
int loops_pool(polyop_body, void*, int64_t, int64_t, int64_t, int);
#endif
struct loops_attribute {
  const char* name;
  int kind;
  int64_t whole;
  double number;
};
struct loops_call {
  int (*kernel)(int, void**, int*, int64_t**, const char**, void*, void*);
  int count, inputs, refused, ndims[%(tensors)d];
  int64_t shapes[%(tensors)d][%(axes)d], bytes[%(tensors)d];
  struct loops_attribute attributes[%(attributes)d];
};
static const struct loops_call loops_calls[] = {%(calls)s};
static int loops_number = 1;
static int loops_threads(void) { return loops_number; }
static void loops_error(struct polyop_extra* self, const char* text) { (void)self, printf("%%s\n", text); }
static int loops_find(const struct polyop_extra* self, const char* name, struct polyop_attribute* value) {
  const struct loops_attribute* one = ((const struct loops_call*)self->state)->attributes;
  while (one->name && strcmp(one->name, name)) ++one;
  if (!one->name) return 1;
  value->kind = one->kind, value->ints = &one->whole, value->floats = &one->number, value->count = 1;
  return 0;
}
static const struct polyop_extra_functions loops_functions = {.attribute = loops_find, .set_error = loops_error};
int main(int argc, char** argv) { /* the number of threads, the file of inputs, that of results */
  FILE* data = argc > 2 ? fopen(argv[2], "rb") : 0;
  FILE* results = argc > 3 ? fopen(argv[3], "wb") : 0;
  if (!data || (argc > 3 && !results)) return 2;
  loops_number = atoi(argv[1]);
  polyop_threads = loops_threads;
#ifdef LOOPS_POOL
  polyop_parallel = loops_pool; /* else the parts of all threads run one after another */
#endif
  for (unsigned n = 0; n < sizeof loops_calls / sizeof *loops_calls; ++n) {
    const struct loops_call* call = &loops_calls[n];
    struct polyop_extra extra = {1, sizeof extra, &loops_functions, (void*)call};
    void* params[%(tensors)d] = {0};
    int64_t* shapes[%(tensors)d];
    const char* dtypes[%(tensors)d] = {0};
    int ndims[%(tensors)d];
    for (int k = 0; k < call->count; ++k) {
      params[k] = malloc(call->bytes[k]);
      memset(params[k], 0x55, call->bytes[k]);
      if (k < call->inputs && fread(params[k], 1, call->bytes[k], data) != (size_t)call->bytes[k]) return 3;
      shapes[k] = (int64_t*)call->shapes[k];
      ndims[k] = call->ndims[k];
    }
    const int failed = call->kernel(call->count, params, ndims, shapes, dtypes, 0, &extra);
    if (failed != call->refused) return printf("call %%u: %%d\n", n, failed), 4;
    for (int k = 0; k < call->count; ++k) {
      if (results) fwrite(params[k], 1, call->bytes[k], results);
      free(params[k]);
    }
  }
  fclose(data);
  if (results && fclose(results)) return 5;
  puts("all ran");
  return 0;
}
"""


class Call(NamedTuple):
    """A call of kernel ``number``: its tensors, of which ``outputs`` are only written, and whether it fails."""

    number: int
    inputs: list
    outputs: list
    attributes: dict = {}  # noqa: RUF012 - never written
    refused: bool = False

    @property
    def tensors(self):
        """All tensors in the order of the kernel's parameters."""
        return [*self.inputs, *self.outputs]


def outputs_alone(kernel, results):
    """Return those results of a kernel that are not inputs written in place."""
    pairs = zip(kernel.outputs, results, strict=True)
    return [array for name, array in pairs if kernel.buffers[name].role == "output"]


def program(kernels, calls):
    """Return the C text of the program; ``kernels`` is the text of a batch."""
    return TEXT % {
        "kernels": kernels,
        "calls": ",\n".join(map(_row, calls)),
        "tensors": TENSORS,
        "axes": AXES,
        "attributes": ATTRIBUTES + 1,  # the last has no name
    }


def inputs(calls):
    """Return what is in the file of inputs."""
    return b"".join(np.ascontiguousarray(a).tobytes() for call in calls for a in call.inputs)


def tensors(calls, data):
    """Return the tensors of each call, from the file of results."""
    found, at = [], 0
    for call in calls:
        arrays = []
        for a in call.tensors:
            arrays.append(np.frombuffer(data[at : at + a.nbytes], a.dtype).reshape(a.shape))
            at += a.nbytes
        found.append(arrays)
    assert at == len(data)
    return found


def _row(call):
    every = call.tensors
    assert len(every) <= TENSORS
    numbers = [len(every), len(call.inputs), int(call.refused)]
    numbers += [[a.ndim for a in every], [list(a.shape) for a in every], [a.nbytes for a in every]]
    attributes = [[name, _kind(value), int(value), float(value)] for name, value in call.attributes.items()]
    row = json.dumps([*numbers, attributes]).replace("[", "{").replace("]", "}")
    return f"{{loops_{call.number}, {row[1:]}"


def _kind(value):
    """Return the number of an attribute's kind in polyop/abi.h."""
    return {bool: 1, int: 2, float: 3}[type(value)]
