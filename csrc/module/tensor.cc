#include "tensor.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "frame.h"

namespace polyop::module {

namespace {

struct Blocks {
  static constexpr size_t kMost = 32;
  void* kept[kMost];
  size_t count = 0;
  ~Blocks() {
    while (count > 0) ::operator delete(kept[--count]);
    count = kMost;  // what is freed after this thread's end is not kept
  }
};
thread_local Blocks blocks;

void free_memory(Storage& storage) {
  if (storage.is_fresh) storage.host->drop(&storage.fresh);
  if (storage.owned) Py_DECREF(storage.object);
}

}  // namespace

void* Tensor::operator new(size_t size) {
  return blocks.count > 0 && blocks.count < Blocks::kMost ? blocks.kept[--blocks.count]
                                                          : ::operator new(size);
}

void Tensor::operator delete(void* block) {
  if (blocks.count + 1 < Blocks::kMost) {
    blocks.kept[blocks.count++] = block;
  } else {
    ::operator delete(block);
  }
}

void Tensor::set_layout(int32_t count, const int64_t* sizes, const int64_t* steps) {
  int64_t* at = dims;
  if (count > 4) {
    many.resize(static_cast<size_t>(count) * 2);
    at = many.data();
  }
  ndim = count;
  numel = 1;
  shape = at;
  strides = at + count;
  for (int32_t i = 0; i < count; ++i) {
    at[i] = sizes[i];
    numel *= sizes[i];
  }
  int64_t expected = 1;
  contiguous = 1;
  for (int32_t i = count - 1; i >= 0; --i) {
    at[count + i] = steps == nullptr ? expected : steps[i];
    if (sizes[i] != 1 && at[count + i] != expected) contiguous = 0;
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
  if (own.is_fresh || own.owned) {
    if (holds_lock()) {
      free_memory(own);
    } else if (Py_IsInitialized()) {  // a module's static tensor may outlive the interpreter
      const PyGILState_STATE state = PyGILState_Ensure();
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
    std::vector<int32_t> found(256, -1);
    for (size_t i = 0; i < dtypes().size(); ++i) {
      const int32_t number = dtypes()[i].type_id;
      if (number > 0 && number < 256) found[static_cast<size_t>(number)] = static_cast<int32_t>(i);
    }
    return found;
  }();
  return type_id > 0 && type_id < 256 ? rows[static_cast<size_t>(type_id)] : -1;
}

namespace {

Ref make(int32_t row, int32_t device, int32_t device_index) {
  auto* made = new Tensor();
  const DType& dtype = dtypes()[static_cast<size_t>(row)];
  made->row = row;
  made->type_id = dtype.type_id;
  made->itemsize = dtype.dlpack_bits / 8;
  made->device_type = device;
  made->device_index = device_index;
  made->offset = 0;
  made->needs_gradient = 0;
  return Ref(made);
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
  Ref made = make(row, device.device, device.device_id);
  Storage* storage = made->storage;
  storage->host = host;
  storage->derived = derived;
  made->set_layout(ndim, shape, nullptr);
  if (!derived) {
    if (!host->empty({shape, ndim, row}, device, &storage->fresh)) {
      PyErr_Clear();
      throw std::runtime_error("no memory for a tensor of " + std::to_string(made->numel) + " elements of " +
                               dtypes()[static_cast<size_t>(row)].name);
    }
    storage->is_fresh = true;
    storage->data = storage->fresh.view.data;
  }
  return made;
}

Ref borrow_object(const Host* host, PyObject* object, const View& view) {
  Ref made = make(view.dtype, view.device, view.device_id);
  Storage* storage = made->storage;
  storage->host = host;
  storage->object = object;
  storage->data = view.data;
  storage->derived = object == nullptr;
  storage->read_only = view.read_only;
  if (view.strides == nullptr || !view.byte_strides) {
    made->set_layout(view.ndim, view.shape, view.strides);
    return made;
  }
  std::vector<int64_t> steps(view.strides, view.strides + view.ndim);
  for (int64_t& step : steps) step /= made->itemsize;
  made->set_layout(view.ndim, view.shape, steps.data());
  return made;
}

Ref make_view(Tensor* base, int32_t ndim, const int64_t* shape, const int64_t* strides, int64_t offset) {
  Tensor* holder = base->base == nullptr ? base : base->base;
  retain(holder);
  Ref made = make(base->row, base->device_type, base->device_index);
  made->base = holder;
  made->storage = &holder->own;
  made->set_layout(ndim, shape, strides);
  made->offset = offset;
  return made;
}

void copy_elements(const Tensor& from, Tensor& to) {
  if (from.numel == 0) return;
  if (from.storage->derived) throw std::runtime_error(no_data);
  const auto size = static_cast<size_t>(from.itemsize);
  const char* source = static_cast<const char*>(from.data());
  char* target = static_cast<char*>(to.data());
  if (from.contiguous != 0 && to.contiguous != 0) {
    std::memcpy(target, source, size * static_cast<size_t>(from.numel));
    return;
  }
  std::vector<int64_t> index(static_cast<size_t>(from.ndim), 0);
  for (int64_t left = from.numel; left > 0; --left) {
    int64_t at = 0, onto = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      at += index[d] * from.strides[d];
      onto += index[d] * to.strides[d];
    }
    std::memcpy(target + onto * from.itemsize, source + at * from.itemsize, size);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < from.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace polyop::module
