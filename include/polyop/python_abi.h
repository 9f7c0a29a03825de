/* The functions that polyop provides to a module that the real pybind11 binds: they convert Python objects to
 * tensors and back. The table is in the capsule polyop._core.python_functions. Call the functions with
 * Python's lock held. */
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
  /* Makes a tensor over the memory of an object, which holds a reference to the object. Returns 0, or 1: see
   * error(). */
  int (*borrow)(PyObject* object, polyop_tensor** result);
  /* Returns the object of a tensor: a new reference, or null with a Python error set. */
  PyObject* (*wrap)(polyop_tensor* tensor);
} polyop_python_functions;

#endif
