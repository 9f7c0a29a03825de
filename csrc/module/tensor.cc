#include "tensor.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "../dense.h"
#include "../python_lock.h"
#include "frame.h"

namespace polyop::module {

namespace {

// Memory of freed tensors, for the next ones of this thread.
struct FreeBlocks {
  static constexpr size_t kMax = 32;
  void* memory[kMax];
  size_t count = 0;
  ~FreeBlocks() {
    while (count > 0) ::operator delete(memory[--count]);
    count = kMax;  // nothing is kept after the thread's end
  }
};
thread_local FreeBlocks blocks;

void free_memory(Storage& storage) {
  if (storage.holds_new_tensor) storage.host->drop(&storage.new_tensor);
  if (storage.owned) Py_DECREF(storage.object);
}

}  // namespace

void* Tensor::operator new(size_t size) {
  return blocks.count > 0 && blocks.count < FreeBlocks::kMax ? blocks.memory[--blocks.count]
                                                             : ::operator new(size);
}

void Tensor::operator delete(void* block) {
  if (blocks.count + 1 < FreeBlocks::kMax) {
    blocks.memory[blocks.count++] = block;
  } else {
    ::operator delete(block);
  }
}

void Tensor::set_layout(int32_t count, const int64_t* sizes, const int64_t* steps) {
  int64_t* layout = dims;
  if (count > 4) {
    heap_dims.resize(static_cast<size_t>(count) * 2);
    layout = heap_dims.data();
  }
  ndim = count;
  numel = 1;
  shape = layout;
  strides = layout + count;
  for (int32_t i = 0; i < count; ++i) {
    layout[i] = sizes[i];
    numel *= sizes[i];
  }
  int64_t expected = 1;
  contiguous = 1;
  for (int32_t i = count - 1; i >= 0; --i) {
    layout[count + i] = steps == nullptr ? expected : steps[i];
    if (sizes[i] != 1 && layout[count + i] != expected) contiguous = 0;
    expected *= sizes[i] > 0 ? sizes[i] : 1;
  }
  if (numel == 0) contiguous = 1;
}

void retain(polyop_tensor* tensor) { as_tensor(tensor)->references.fetch_add(1, std::memory_order_relaxed); }

void release(polyop_tensor* tensor) {
  Tensor* self = as_tensor(tensor);
  // the only reference is ours: no other thread can take one, and nothing need be written
  if (self->references.load(std::memory_order_acquire) != 1 &&
      self->references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  Storage& own = self->own;
  if (own.holds_new_tensor || own.owned) {
    if (holds_lock()) {
      free_memory(own);
    } else if (Py_IsInitialized()) {  // a module's static tensor may outlive the interpreter
      const PyGILState_STATE state = ensure_lock();
      free_memory(own);
      PyGILState_Release(state);
    }
  }
  Tensor* base = self->base;
  if (own.original != nullptr) release(own.original);
  delete self;
  if (base != nullptr) release(base);
}

int32_t row_of_type(int32_t type_id) {
  static const std::vector<int32_t> rows = [] {
    std::vector<int32_t> table(256, -1);
    for (size_t i = 0; i < dtypes().size(); ++i) {
      const int32_t number = dtypes()[i].type_id;
      if (number > 0 && number < 256) table[static_cast<size_t>(number)] = static_cast<int32_t>(i);
    }
    return table;
  }();
  return type_id > 0 && type_id < 256 ? rows[static_cast<size_t>(type_id)] : -1;
}

namespace {

Ref make(int32_t row, int32_t device, int32_t device_index) {
  auto* tensor = new Tensor();
  const DType& dtype = dtypes()[static_cast<size_t>(row)];
  tensor->row = row;
  tensor->type_id = dtype.type_id;
  tensor->itemsize = dtype.dlpack_bits / 8;
  tensor->device_type = device;
  tensor->device_index = device_index;
  tensor->offset = 0;
  tensor->needs_gradient = 0;
  return Ref(tensor);
}

}  // namespace

Ref make_empty(const Host* host, const View& device, bool derived, int32_t row, int32_t ndim,
               const int64_t* shape) {
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) {
      throw std::runtime_error("a tensor cannot have the size " + std::to_string(shape[i]) +
                               " in dimension " + std::to_string(i));
    }
  }
  Ref tensor = make(row, device.device, device.device_id);
  Storage* storage = tensor->storage;
  storage->host = host;
  storage->derived = derived;
  tensor->set_layout(ndim, shape, nullptr);
  if (!derived) {
    if (!host->empty({shape, ndim, row}, device, &storage->new_tensor)) {
      PyErr_Clear();
      throw std::runtime_error("no memory for a tensor of " + std::to_string(tensor->numel) +
                               " elements of " + dtypes()[static_cast<size_t>(row)].name);
    }
    storage->holds_new_tensor = true;
    storage->data = storage->new_tensor.view.data;
  }
  return tensor;
}

Ref borrow_object(const Host* host, PyObject* object, const View& view) {
  Ref tensor = make(view.dtype, view.device, view.device_id);
  Storage* storage = tensor->storage;
  storage->host = host;
  storage->object = object;
  storage->data = view.data;
  storage->derived = object == nullptr;
  storage->read_only = view.read_only;
  if (view.strides == nullptr || !view.byte_strides) {
    tensor->set_layout(view.ndim, view.shape, view.strides);
    return tensor;
  }
  std::vector<int64_t> steps(view.strides, view.strides + view.ndim);
  for (int64_t& step : steps) step /= tensor->itemsize;
  tensor->set_layout(view.ndim, view.shape, steps.data());
  return tensor;
}

Ref make_view(Tensor* base, int32_t ndim, const int64_t* shape, const int64_t* strides, int64_t offset) {
  Tensor* holder = base->base == nullptr ? base : base->base;
  retain(holder);
  Ref view = make(base->row, base->device_type, base->device_index);
  view->base = holder;
  view->storage = &holder->own;
  view->set_layout(ndim, shape, strides);
  view->offset = offset;
  return view;
}

void copy_elements(const Tensor& from, Tensor& to) {
  if (from.numel == 0) return;
  if (from.storage->derived) throw std::runtime_error(kNoData);
  const auto size = static_cast<size_t>(from.itemsize);
  const char* source = static_cast<const char*>(from.data());
  char* target = static_cast<char*>(to.data());
  if (from.contiguous != 0 && to.contiguous != 0) {
    std::memcpy(target, source, size * static_cast<size_t>(from.numel));
    return;
  }
  const View view{from.data(), from.shape, from.ndim, from.row, kCpu, 0, from.strides};
  if (to.contiguous != 0 && copy_to_dense(view, target, false)) return;
  std::vector<int64_t> index(static_cast<size_t>(from.ndim), 0);
  for (int64_t remaining = from.numel; remaining > 0; --remaining) {
    int64_t source_offset = 0, target_offset = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      source_offset += index[d] * from.strides[d];
      target_offset += index[d] * to.strides[d];
    }
    std::memcpy(target + target_offset * from.itemsize, source + source_offset * from.itemsize, size);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < from.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace polyop::module
