/* What polyop does for a module that is bound with pybind11 itself: tensors from Python objects.
 * Found as the capsule polyop._core.python_functions; to be called with Python's lock. */
#ifndef POLYOP_PYTHON_ABI_H
#define POLYOP_PYTHON_ABI_H

#include <Python.h>

#include "module_abi.h"

typedef struct polyop_python_functions {
  uint32_t version; /* POLYOP_MODULE_VERSION */
  uint32_t size;    /* of this struct, in bytes */
  const polyop_module_functions* module;
  /* Whether an object is a tensor of a framework that polyop knows. */
  int (*is_tensor)(PyObject* object);
  /* A tensor over an object's memory; it holds a reference to the object. 0, or 1: see error(). */
  int (*borrow)(PyObject* object, polyop_tensor** made);
  /* The object of a tensor: a new reference, or null with a Python error set. */
  PyObject* (*wrap)(polyop_tensor* tensor);
} polyop_python_functions;

#endif
