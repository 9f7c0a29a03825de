// The functions that modules receive in their table. No C++ exception leaves them: they return 1.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "frame.h"

namespace polyop::module {

namespace {

template <typename F>
int catching_errors(F body) {
  try {
    body(Frame::current());
    return 0;
  } catch (const std::exception& problem) {
    set_failure(problem.what());
  }
  return 1;
}

int32_t checked_row(int32_t type_id) {
  const int32_t row = row_of_type(type_id);
  if (row < 0) throw std::runtime_error("a tensor cannot have the TypeId " + std::to_string(type_id));
  return row;
}

int empty(int32_t type_id, int32_t ndim, const int64_t* shape, polyop_tensor** result) {
  return catching_errors(
      [&](Frame& frame) { *result = frame.empty(checked_row(type_id), ndim, shape).take(); });
}

// Throws when a view would reach memory outside of `base`.
void check_reach(const Tensor& base, int32_t ndim, const int64_t* shape, const int64_t* strides,
                 int64_t offset) {
  if (strides == nullptr) return;
  int64_t first = offset, last = offset;
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] == 0) return;
    (strides[i] < 0 ? first : last) += strides[i] * (shape[i] - 1);
  }
  int64_t base_first = base.offset, base_last = base.offset;
  for (int32_t i = 0; i < base.ndim; ++i) {
    (base.strides[i] < 0 ? base_first : base_last) += base.strides[i] * (base.shape[i] - 1);
  }
  if (first < base_first || last > base_last)
    throw std::runtime_error("a view reaches outside of its tensor");
}

int view(polyop_tensor* tensor, int32_t ndim, const int64_t* shape, const int64_t* strides, int64_t offset,
         polyop_tensor** result) {
  return catching_errors([&](Frame& frame) {
    Tensor* base = as_tensor(tensor);
    frame.renew(*base);
    check_reach(*base, ndim, shape, strides, offset);
    Ref new_view = make_view(base, ndim, shape, strides, offset);
    if (strides == nullptr && (new_view->numel != base->numel || base->contiguous == 0)) {
      throw std::runtime_error("a tensor of " + std::to_string(base->numel) +
                               " elements cannot be viewed as one of " + std::to_string(new_view->numel));
    }
    new_view->needs_gradient = base->needs_gradient;
    new_view->source = base->source;
    if (strides != nullptr && base->needs_gradient != 0) new_view->source.lost = true;
    *result = frame.adopt_view(Ref::share(base), std::move(new_view)).take();
  });
}

int contiguous(polyop_tensor* tensor, polyop_tensor** result) {
  return catching_errors([&](Frame& frame) { *result = frame.contiguous(as_tensor(tensor)).take(); });
}

int data(polyop_tensor* tensor, void** address) {
  return catching_errors([&](Frame& frame) {
    Tensor* self = as_tensor(tensor);
    if (frame.deriving || self->storage->derived) {
      throw std::runtime_error(  // kernels/module/kernel.py looks for these words
          "the data of a tensor was requested while output shapes are derived; there is no data then");
    }
    frame.note_exposed(*self);
    *address = self->data();
  });
}

int fill(polyop_tensor* tensor, const void* from, size_t bytes) {
  return catching_errors([&](Frame& frame) {
    Tensor* self = as_tensor(tensor);
    if (bytes != static_cast<size_t>(self->numel * self->itemsize) || self->contiguous == 0) {
      throw std::runtime_error("fill needs the bytes of a whole dense tensor");
    }
    const bool lost = frame.recording && !frame.in_forward;
    frame.write(*self, lost && (frame.untracked_read || self->needs_gradient != 0));
    if (frame.trace != nullptr) {
      frame.trace->add("fill", "fill",
                       Py_BuildValue("(iy#)", self->row, from, static_cast<Py_ssize_t>(bytes)), {self->id});
    } else if (self->device_type != kCpu) {
      throw std::runtime_error("values can be put into a tensor on the CPU only");
    } else if (bytes > 0) {
      std::memcpy(self->data(), from, bytes);
    }
  });
}

int launch_entry(const char* name, const polyop_value* arguments, size_t count, size_t outputs) {
  return catching_errors([&](Frame& frame) { launch(frame, name, arguments, count, outputs); });
}

// One for each kernel that runs on this thread; null when the kernel needs none.
thread_local std::vector<Ref> workspaces;

int begin(const char* name, polyop_tensor* const* inputs, size_t input_count, polyop_tensor* const* outputs,
          size_t output_count, size_t bytes, void** workspace, int32_t* run) {
  return catching_errors([&](Frame& frame) {
    std::vector<int> ids;
    for (size_t i = 0; i < input_count; ++i) {
      if (inputs[i] != nullptr) frame.propagate_lost(*as_tensor(inputs[i]));
    }
    const bool lost = frame.recording && (frame.needs_gradient(inputs, input_count) ||
                                          frame.needs_gradient(outputs, output_count));
    for (size_t i = 0; i < output_count; ++i) {
      frame.write(*as_tensor(outputs[i]), lost);
      ids.push_back(as_tensor(outputs[i])->id);
    }
    *workspace = nullptr;
    *run = frame.deriving ? 0 : 1;
    if (frame.trace != nullptr) {
      std::vector<polyop_value> values;
      for (size_t i = 0; i < input_count; ++i) values.push_back(value_of(as_tensor(inputs[i])));
      frame.trace->add("kernel", name, to_python(values.data(), values.size(), tensor_id), std::move(ids));
      return;
    }
    constexpr int32_t kUint8 = 5;  // row of dtypes(); checked when the table is set
    const auto size = static_cast<int64_t>(bytes);
    workspaces.push_back(bytes > 0 ? frame.empty(kUint8, 1, &size) : Ref());
    if (bytes > 0) *workspace = workspaces.back()->data();
    if (frame.kernels++ == 0) frame.unlock();  // a kernel may run another
  });
}

void end() {
  Frame& frame = Frame::current();
  if (frame.kernels == 0) return;
  if (--frame.kernels == 0) frame.lock();
  workspaces.pop_back();
}

void* stream() {
  const Frame& frame = Frame::current();
  return frame.host == nullptr ? nullptr : frame.host->stream(frame.device);
}

int recording() {
  try {
    Frame& frame = Frame::current();
    if (!frame.recording) return 0;
    ++frame.forwards;
    frame.in_forward = true;
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}

int record(const polyop_node* call) {
  return catching_errors([&](Frame& frame) {
    frame.in_forward = false;
    for (size_t i = 0; i < call->dirty_count; ++i) frame.restore(*as_tensor(call->dirty[i]));
    for (size_t i = 0; i < call->input_count; ++i) {
      if (call->inputs[i] != nullptr) frame.propagate_lost(*as_tensor(call->inputs[i]));
    }
    Node node(*call);  // owns the state from here on
    const int number = static_cast<int>(frame.nodes.size());
    const bool requires_gradient = std::any_of(node.inputs.begin(), node.inputs.end(),
                                               [](const Edge& edge) { return edge.requires_gradient; });
    for (size_t i = 0; i < call->dirty_count; ++i) frame.write(*as_tensor(call->dirty[i]), false);
    for (size_t i = 0; i < call->output_count; ++i) {
      Tensor* output = as_tensor(call->outputs[i]);
      if (output == nullptr) continue;
      output->source = {number, static_cast<int>(i), false};
      output->storage->lost = false;
      output->needs_gradient =
          requires_gradient && (i >= 64 || (node.non_differentiable >> i & 1) == 0) ? 1 : 0;
    }
    frame.nodes.push_back(std::move(node));
  });
}

int wrote(polyop_tensor* tensor) {
  return catching_errors([&](Frame& frame) {
    if (tensor != nullptr && !frame.recording) frame.write(*as_tensor(tensor), false);
    if (tensor != nullptr && as_tensor(tensor)->storage->read_only) {
      throw std::runtime_error("a read-only tensor was written");
    }
  });
}

void left() {
  try {
    Frame::current().in_forward = false;
  } catch (const std::exception&) {
    set_failure("");
  }
}

int deriving() {
  try {
    return Frame::current().deriving ? 1 : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

const char* error() { return failure().c_str(); }

const polyop_module_functions table = {POLYOP_MODULE_VERSION,
                                       sizeof(polyop_module_functions),
                                       retain,
                                       release,
                                       empty,
                                       view,
                                       contiguous,
                                       data,
                                       fill,
                                       launch_entry,
                                       begin,
                                       end,
                                       stream,
                                       recording,
                                       record,
                                       deriving,
                                       error,
                                       [](const char* text) { set_failure(text); },
                                       wrote,
                                       left};

}  // namespace

const polyop_module_functions* module_functions() { return &table; }

}  // namespace polyop::module
