// ONNX Runtime's custom operators: how its sessions run operators.
#pragma once

#include <Python.h>

namespace polyop {

// start_onnx(), stop_onnx(); the library's own entry, RegisterCustomOps, is called by ONNX Runtime.
extern PyMethodDef onnx_methods[];

}  // namespace polyop
