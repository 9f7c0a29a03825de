#include "tvm_ffi.h"

#include <stdexcept>
#include <string_view>

#include "library.h"

namespace polyop::tvm_ffi {

namespace {

template <typename F>
void find(uintptr_t library, const char* name, F* function) {
  *function = reinterpret_cast<F>(find_symbol(library, name));
  if (*function == nullptr) throw std::runtime_error(std::string("libtvm_ffi.so has no ") + name);
}

std::string_view view(const Bytes& bytes) { return {bytes.data, bytes.size}; }

// The lines of a backtrace, the most recent call last.
std::string reversed(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const size_t end = lines.rfind('\n');
    const std::string_view line = end == std::string_view::npos ? lines : lines.substr(end + 1);
    if (!line.empty()) text.append("\n").append(line);
    lines = end == std::string_view::npos ? std::string_view() : lines.substr(0, end);
  }
  return text;
}

const char* name_of(int32_t type) {
  switch (type) {
    case kInt:
      return "an int";
    case kBool:
      return "a bool";
    case kFloat:
      return "a float";
    case kTensor:
      return "a tensor";
    case kArray:
      return "an array";
    default:
      return "a value";
  }
}

// Makes the caller's stream that of tvm-ffi in this thread.
class Stream {
 public:
  Stream(const Runtime& runtime, const Parameters& parameters, void* stream)
      : runtime_(runtime), device_(parameters.device), device_id_(parameters.device_id) {
    if (device_ != kCpu) runtime_.set_stream(device_, device_id_, stream, &previous_);
  }
  ~Stream() {
    if (device_ != kCpu) runtime_.set_stream(device_, device_id_, previous_, nullptr);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

 private:
  const Runtime& runtime_;
  int32_t device_;
  int32_t device_id_;
  void* previous_ = nullptr;
};

}  // namespace

Runtime::Runtime(uintptr_t library) {
  find(library, "TVMFFIObjectIncRef", &keep);
  find(library, "TVMFFIObjectDecRef", &release);
  find(library, "TVMFFIErrorMoveFromRaised", &take_error);
  find(library, "TVMFFIEnvSetStream", &set_stream);
}

Function::Function(uintptr_t symbol, uintptr_t object, uintptr_t runtime, const Signature& signature,
                   Extra* extra)
    : runtime_(runtime), object_(reinterpret_cast<void*>(object)) {
  for (size_t i = 0; i < signature.inputs; ++i) add_tensor(signature.dtypes[i]);
  for (const std::string& name : signature.attributes) add_attribute(name, extra);
  for (size_t i = signature.inputs; i < signature.dtypes.size(); ++i) add_tensor(signature.dtypes[i]);
  call_ = object_ == nullptr ? reinterpret_cast<SafeCall>(symbol)
                             : reinterpret_cast<const FunctionObject*>(object_)->call;
  if (object_ != nullptr) runtime_.keep(object_);
}

Function::~Function() {
  if (object_ != nullptr) runtime_.release(object_);
}

void Function::add_tensor(int32_t dtype) {
  Slot slot = {arguments_.size(), {}, dtype < 0};
  Any argument = {kNone, 0, {0}};
  if (!slot.is_absent) {
    const DType& row = dtypes()[static_cast<size_t>(dtype)];
    slot.dtype = {row.dlpack_code, row.dlpack_bits, 1};
    argument.type = kTensorPointer;
  }
  tensors_.push_back(slot);
  arguments_.push_back(argument);
}

void Function::add_attribute(const std::string& name, Extra* extra) {
  polyop_attribute value = {};
  const polyop_extra* contract = extra->contract();
  if (contract->functions->attribute(contract, name.c_str(), &value) != 0 || value.depth != 0)
    throw std::runtime_error("the attribute " + name +
                             " is a list; it takes an int, float, bool, str or None");
  Any argument = {kNone, 0, {0}};
  if (value.kind == POLYOP_FLOAT) {
    argument.type = kFloat;
    argument.number = value.floats[0];
  } else if (value.kind == POLYOP_STRING) {
    argument.type = kText;
    argument.text = value.strings[0];
  } else if (value.kind != POLYOP_NONE) {
    argument.type = value.kind == POLYOP_BOOL ? kBool : kInt;
    argument.integer = value.ints[0];
  }
  arguments_.push_back(argument);
}

Outcome Function::call(const Parameters& parameters, void* stream) const {
  Small<dlpack::Tensor, 16> tensors;
  Small<int64_t, 64> strides;
  Small<Any, 32> arguments;
  for (const Any& argument : arguments_) arguments.push(argument);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    for (int d = 0; d < parameters.ndims[i]; ++d) strides.push(0);
  }
  int64_t* next = strides.data();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const int ndim = parameters.ndims[i];
    int64_t* shape = parameters.shapes[i];
    int64_t step = 1;
    for (int d = ndim - 1; d >= 0; --d) {
      next[d] = step;
      step *= shape[d];
    }
    const dlpack::Device device = {parameters.device, parameters.device_id};
    tensors.push({parameters.data[i], device, ndim, tensors_[i].dtype, shape, next, 0});
    next += ndim;
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].is_absent) arguments[tensors_[i].position].pointer = &tensors[i];
  }
  const Stream current(runtime_, parameters, stream);
  Any result = {kNone, 0, {0}};
  const int code = call_(object_, arguments.data(), static_cast<int32_t>(arguments.size()), &result);
  if (code != 0) return failure();
  return result.type == kNone ? Outcome{0, false, "", false} : refuse(result);
}

Outcome Function::failure() const {
  void* error = nullptr;
  runtime_.take_error(&error);
  Outcome outcome = {-1, true, "an error of tvm-ffi without a text", false};
  if (error != nullptr) {
    const auto* object = static_cast<const ErrorObject*>(error);
    outcome.error.assign(view(object->kind)).append(": ").append(view(object->message));
    outcome.error.append(reversed(view(object->backtrace)));
    runtime_.release(error);
  }
  return outcome;
}

Outcome Function::refuse(Any result) const {
  if (result.type >= kFirstObject) runtime_.release(result.pointer);
  return {1, false,
          std::string("the tvm-ffi function must return None and write the outputs that it gets, but it "
                      "returned ") +
              name_of(result.type),
          false};
}

}  // namespace polyop::tvm_ffi
