#include "frame.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "polyop/export/overlap.h"

namespace polyop::module {

namespace {
thread_local Frame* current_frame = nullptr;
thread_local std::string failure_text;
std::atomic<uint64_t> next_number{1};
}  // namespace

const std::string& failure() { return failure_text; }
void set_failure(const std::string& text) { failure_text = text; }

Frame::Frame(const Host* owner, const View& where)
    : host(owner),
      device(where),
      number(next_number.fetch_add(1, std::memory_order_relaxed)),
      outer_(current_frame) {
  current_frame = this;
}

Frame::Frame(Ambient) : number(next_number.fetch_add(1, std::memory_order_relaxed)), ambient_(true) {
  Frame** last = &current_frame;  // outside of the calls in progress
  while (*last != nullptr) last = &(*last)->outer_;
  *last = this;
}

Frame::~Frame() {
  if (state_ != nullptr) lock();
  current_frame = outer_;
}

bool holds_lock() {
  return current_frame != nullptr && !current_frame->is_unlocked() && !current_frame->is_ambient();
}

Frame& Frame::current() {
  if (current_frame == nullptr) {
    throw std::runtime_error(
        "a tensor was used outside of a call of the module, or on a thread of its own; "
        "tensors cannot be made by static variables");
  }
  return *current_frame;
}

Ref Frame::adopt(Ref tensor) {
  tensor->id = tensors++;
  tensor->call = number;
  return tensor;
}

void Frame::renew(Tensor& tensor) {
  if (tensor.call == number) return;
  tensor.id = tensors++;
  tensor.call = number;
  tensor.argument = tensor.forward = -1;
  tensor.source = Source();
  tensor.needs_gradient = 0;
}

PyObject* tuple_of(const int64_t* numbers, int32_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple != nullptr && i < count; ++i) {
    PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(numbers[i]));
  }
  return tuple;
}

Ref Frame::empty(int32_t row, int32_t ndim, const int64_t* shape) {
  const LockedFrame lock(*this);
  Ref tensor = adopt(make_empty(host, device, deriving, row, ndim, shape));
  if (trace != nullptr) {
    trace->add("empty", "empty", Py_BuildValue("(iN)", static_cast<int>(row), tuple_of(shape, ndim)),
               {tensor->id});
  }
  return tensor;
}

Ref Frame::adopt_view(const Ref& base, Ref view) {
  view = adopt(std::move(view));
  if (trace != nullptr) {
    const bool reshape = base->contiguous != 0 && view->contiguous != 0 && base->numel == view->numel;
    trace->add("view", reshape ? "reshape" : "as_strided",
               Py_BuildValue("(NNNL)", tensor_id(base.get()), tuple_of(view->shape, view->ndim),
                             tuple_of(view->strides, view->ndim), static_cast<long long>(view->offset)),
               {view->id});
  }
  return view;
}

Ref Frame::contiguous(Tensor* tensor) {
  renew(*tensor);
  if (tensor->contiguous != 0) return Ref::share(tensor);
  Ref copy = empty(tensor->row, tensor->ndim, tensor->shape);
  copy->needs_gradient = tensor->needs_gradient;
  copy->source = tensor->source;
  if (trace != nullptr) {
    trace->add("copy", "contiguous", Py_BuildValue("(N)", tensor_id(tensor)), {copy->id});
  } else if (tensor->device_type != kCpu) {
    throw std::runtime_error(
        "a tensor that is not dense cannot be copied on this device; make it contiguous");
  } else {
    copy_elements(*tensor, *copy.get());
    retain(tensor);
    copy->own.original = tensor;
  }
  return copy;
}

bool Frame::needs_gradient(polyop_tensor* const* tensors, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (tensors[i] != nullptr && tensors[i]->needs_gradient != 0) return true;
  }
  return false;
}

namespace {

// Throws for a tensor of the caller whose elements share memory. Most are refused before the call
// (check_written in run.cc); here come those that no schema declares as written, and those of Backward.
void check_overlap(const Tensor& tensor, const std::vector<std::string>* names) {
  if (tensor.contiguous != 0 || tensor.argument < 0 || tensor.storage->derived) return;
  const auto number = static_cast<size_t>(tensor.argument);
  const bool known = names != nullptr && number < names->size();
  const std::string name = known ? (*names)[number] : std::to_string(number);
  exported::check_overlap({name.c_str(), static_cast<const char*>(tensor.data()), tensor.shape,
                           tensor.strides, tensor.ndim, tensor.itemsize});
}

}  // namespace

void Frame::write(Tensor& tensor, bool lost) {
  renew(tensor);
  if (tensor.storage->read_only) throw std::runtime_error("a read-only tensor cannot be written");
  const Tensor& whole = tensor.base == nullptr ? tensor : *tensor.base;
  if (whole.call == number) check_overlap(whole, names);
  tensor.storage->written = true;
  Tensor* original = tensor.storage->original;
  if (original != nullptr && original->call == number) {
    write(*original, lost);
    Tensor* holder = tensor.base == nullptr ? &tensor : tensor.base;
    const bool known =
        std::any_of(copies_.begin(), copies_.end(), [&](const Ref& copy) { return copy.get() == holder; });
    if (!known) copies_.push_back(Ref::share(holder));
  }
  if (!lost) return;
  if (tensor.forward != forwards) {
    tensor.forward = forwards;
    tensor.source_before = tensor.source;
    tensor.needs_gradient_before = tensor.needs_gradient;
  }
  tensor.needs_gradient = 1;
  tensor.source.lost = true;
  tensor.storage->lost = true;
}

namespace {

bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.ndim != b.ndim || a.offset != b.offset) return false;
  for (int32_t i = 0; i < a.ndim; ++i) {
    if (a.shape[i] != b.shape[i] || a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

}  // namespace

void Frame::copy_back(std::vector<Ref>* outputs) {
  for (const Ref& copy : copies_) {
    Tensor* original = copy->own.original;
    copy_elements(*copy.get(), *original);
    for (Ref& output : *outputs) {
      if (output.get() != copy.get() || original->argument < 0) continue;
      original->source = copy->source;
      original->needs_gradient = copy->needs_gradient;
      output = Ref::share(original);
    }
  }
  copies_.clear();
  for (Ref& output : *outputs) {  // a view of a whole written argument is the argument
    Tensor* base = output ? output->base : nullptr;
    if (base == nullptr || base->argument < 0 || !base->own.written || !same_layout(*output.get(), *base)) {
      continue;
    }
    base->source = output->source;
    base->needs_gradient = output->needs_gradient;
    output = Ref::share(base);
  }
}

void Frame::restore(Tensor& tensor) const {
  if (tensor.forward != forwards) return;
  tensor.storage->lost = false;
  tensor.source = tensor.source_before;
  tensor.needs_gradient = tensor.needs_gradient_before;
}

void Frame::note_exposed(Tensor& tensor) {
  renew(tensor);
  if (!recording || in_forward || is_unlocked()) return;
  if (tensor.needs_gradient != 0) {
    untracked_read = true;
  } else if (tensor.storage->holds_new_tensor) {
    tensor.storage->exposed = true;
  }
}

void Frame::propagate_lost(Tensor& tensor) {
  renew(tensor);
  const bool depends_on_untracked = untracked_read && tensor.storage->exposed && !tensor.source.exists();
  if (!depends_on_untracked && !(tensor.storage->lost && recording && !in_forward)) return;
  tensor.needs_gradient = 1;
  tensor.source.lost = true;
}

void Frame::unlock() { state_ = PyEval_SaveThread(); }

void Frame::lock() {
  PyThreadState* state = state_;
  state_ = nullptr;
  retake_lock(state);
}

polyop_value value_of(Tensor* tensor) {
  polyop_value value{};
  value.kind = POLYOP_VALUE_TENSOR;
  value.as.tensor = tensor;
  return value;
}

polyop_value value_of(int64_t integer) {
  polyop_value value{};
  value.kind = POLYOP_VALUE_INT;
  value.as.integer = integer;
  return value;
}

}  // namespace polyop::module
