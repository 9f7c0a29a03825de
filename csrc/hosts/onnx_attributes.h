// The attributes of an ONNX node as Python values.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

#include "onnx_api.h"

namespace polyop {

// A dictionary of those of the attributes that the node has: int, float, str, lists of these; a tensor
// of int64, float64 or strings is a number or text where it has no dimension, else a flat list. Null
// with a Python error set where Python has no memory. Needs Python's lock.
PyObject* onnx_attributes(const ort::Api& api, const ort::Info* info, const std::vector<std::string>& names);

}  // namespace polyop
