// The attributes of an ONNX node as Python values.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

#include "polyop/export/onnx_api.h"

namespace polyop {

// Returns a dictionary of the named attributes that the node has. Values are int, float, str, or lists of
// these. A tensor of int64, float64 or strings becomes a number or str when it has no dimensions, a flat list
// when it has one. Null with a Python error when there is no memory. Needs Python's lock.
PyObject* onnx_attributes(const ort::Api& api, const ort::Info* info, const std::vector<std::string>& names);

}  // namespace polyop
