// The functions that MindSpore launches: one for all calls. It finds the call in an attribute of the graph's
// node, which names the operator and has its attributes (target.h), so that a graph in a file (MindIR) has it
// too.
//
// MindSpore passes an object of a C++ class with strings of the old ABI of libstdc++; CMakeLists.txt compiles
// this file with it. Nothing with a string crosses to files of the other one.
#define POLYOP_STRINGS old_strings
#include "mindspore_extra.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "aot_class.h"

namespace {

struct Call : polyop::old_strings::KernelData {
  Call(void* target, size_t inputs) : target(target), inputs(inputs) {}
  void* target;
  size_t inputs;
};

}  // namespace

// MindSpore calls it once for each node of a graph.
extern "C" __attribute__((visibility("default"), used)) int polyop_launchInit(
    int*, int64_t**, const char**, polyop::old_strings::MindSporeExtra* extra) {
  const std::string text = extra->GetAttrStr("polyop_call");
  const auto inputs = static_cast<size_t>(extra->GetAttrInt("polyop_inputs"));
  extra->data = new Call(polyop::mindspore_target(text.data(), text.size()), inputs);
  return 0;
}

extern "C" __attribute__((visibility("default"), used)) int polyop_launch(int count, void** params,
                                                                          int* ndims, int64_t** shapes,
                                                                          const char** dtypes, void*,
                                                                          void* extra) {
  const auto* call = static_cast<const Call*>(static_cast<polyop::old_strings::MindSporeExtra*>(extra)->data);
  polyop::mindspore_run(call->target, call->inputs, count, params, ndims, shapes, dtypes);
  return 0;
}

// MindSpore calls it when it compiles a graph with unknown sizes, and when it runs it.
extern "C" __attribute__((visibility("default"), used)) std::vector<std::vector<int64_t>>
polyop_launchInferShape(int* ndims, int64_t** shapes, polyop::old_strings::MindSporeExtra* extra) {
  const std::string text = extra->GetAttrStr("polyop_call"), dtypes = extra->GetAttrStr("polyop_dtypes");
  const auto inputs = static_cast<size_t>(extra->GetAttrInt("polyop_inputs"));
  std::vector<std::vector<int64_t>> outputs;
  const auto add = [](void* to, const int64_t* shape, size_t ndim) {
    static_cast<std::vector<std::vector<int64_t>>*>(to)->emplace_back(shape, shape + ndim);
  };
  polyop::mindspore_shapes(text.c_str(), dtypes.c_str(), inputs, ndims, shapes, add, &outputs);
  return outputs;
}
