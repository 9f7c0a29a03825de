// A native kernel that is ready to run for one set of specs and attributes.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "extra.h"
#include "lru_table.h"
#include "small.h"

namespace polyop {

// A row of the dtype table of polyop.core.dtypes. dtypes() has the rows in that order; import fills it.
struct DType {
  std::string name;
  uint8_t dlpack_code;
  uint8_t dlpack_bits;
  PyObject* numpy;  // the np.dtype, owned for the life of the process
  int32_t type_id;  // MindSpore's number, or 0

  // Whether tensors of this dtype have gradients: not integers (DLPack codes 0 and 1), not bools (6).
  bool is_smooth() const { return dlpack_code != 0 && dlpack_code != 1 && dlpack_code != 6; }
};
std::vector<DType>& dtypes();

// A tensor's data as the kernel sees it. Pointers are borrowed for the duration of a call.
struct View {
  void* data;
  const int64_t* shape;
  int32_t ndim;
  int32_t dtype;   // row of dtypes(), or -1
  int32_t device;  // DLPack's device type: 1 is the CPU
  int32_t device_id;
  const int64_t* strides;  // null: dense
  bool byte_strides;       // in bytes, not elements
  bool read_only;
};
constexpr int32_t kCpu = 1;

struct Output {
  std::vector<int64_t> shape;
  int32_t dtype;
};

namespace module {
struct Function;
}
namespace tvm_ffi {
class Function;
}
class DenseCopies;

// A tensor that a kernel was compiled for: in rows, of a dense tensor with this shape.
struct InRows {
  size_t parameter;
  std::vector<int64_t> shape;
};

struct Launch {
  polyop_kernel kernel = nullptr;
  std::vector<Output> outputs;
  std::shared_ptr<Extra> extra;
  std::shared_ptr<const module::Function> function;  // a C++ module's; then `kernel` is null
  std::shared_ptr<const tvm_ffi::Function> tvm_ffi;  // of tvm-ffi; then `kernel` is null
  std::string label;                                 // names the kernel in errors
  std::vector<InRows> in_rows;                       // the tensors that the kernel reads where they lie

  // How much it weighs in a table of prepared calls; see lru_table.h.
  uint32_t weight() const { return extra != nullptr && extra->has_data() ? kDataWeight : 1; }
};

// What one call passes to a kernel.
struct Parameters {
  Small<void*, 16> data;
  Small<int, 16> ndims;
  Small<int64_t*, 16> shapes;
  Small<const char*, 16> dtypes;
  int32_t device = kCpu;  // of the tensors
  int32_t device_id = 0;
  polyop_extra* extra = nullptr;  // in place of the launch's: that has the call's own numbers

  void add(const View& view);
  void add_absent();  // an optional tensor that was not given
};

struct Outcome {
  int code;           // the kernel's return value; -1 when it threw
  bool threw;         // a C++ exception
  std::string error;  // the text that the kernel set, or the exception's
  bool interrupted;   // a Python exception is set: a signal handler raised it, or forked
};

// Both call the kernel without Python's lock. run() releases the lock and takes it again; the caller of
// run_unlocked() does not hold it. run() makes the planned copies first, and throws std::bad_alloc if there
// is no memory for them. While a loop kernel runs in run() on Python's main thread, Python's signal handlers
// run too.
Outcome run(const Launch& launch, Parameters& parameters, void* stream, DenseCopies& copies);
Outcome run_unlocked(const Launch& launch, Parameters& parameters, void* stream);

}  // namespace polyop
