// Calls of an operator from a runtime without Python: a text names the operator, the runtime has the memory.
//
// XLA's custom calls, MindSpore's aot launches and ONNX Runtime's nodes come here. Python
// (polyop.call.foreign) resolves the text once for each set of shapes. After that a native kernel runs
// without Python's lock.
#pragma once

#include <Python.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "key.h"
#include "launch.h"
#include "locks.h"

namespace polyop {

// Allocates workspaces on the device of the tensors. The destructor frees them.
struct Workspaces {
  virtual void* allocate(size_t bytes) = 0;  // null: out of memory
  virtual ~Workspaces() = default;
};

// The inputs that are present, then all outputs.
using Views = Small<View, 16>;

class Target {
 public:
  // The target of a text, created on first use. It lives as long as the process. Any thread may call this.
  static Target& of(std::string_view text);

  // Runs the operator. All tensors are dense, the first `inputs` of them are inputs. Returns the text of the
  // error, or an empty text. Any thread may call this, with Python's lock or without.
  std::string run(const Views& tensors, size_t inputs, void* stream, Workspaces& workspaces);

  // Sets the Python function that resolves a text for given tensors. It is called with
  //   (text, [(shape, row of dtypes(), device)], inputs)
  // and returns
  //   (Launch or a function of arrays, parameters, written, cacheable, failed, narrowed, unfit)
  // parameters: indices of tensors in the kernel's order, -1 for an absent one
  // written: pairs of an input, and the output that shares its memory
  // cacheable: whether the answer holds for later calls with the same specs
  // failed(code, text, threw, kernel): raises the error of a kernel that failed
  // narrowed: pairs of an output, and the row of dtypes() that the kernel writes in place of its dtype;
  // csrc/narrow.h unfit(output, value): raises the error for a value of such an output that does not fit
  static void set_resolver(PyObject* resolver, const Launch* (*unwrap)(PyObject*));

  // Whether that function is set: whether the process has imported polyop.
  static bool has_resolver();

 private:
  struct Resolution;
  explicit Target(std::string_view text) : text_(text) {}
  std::shared_ptr<const Resolution> find(const Key& key);
  std::shared_ptr<const Resolution> resolve(const Views& tensors, size_t inputs, const Key& key,
                                            std::string* error);
  std::string text_;
  ShortLock& lock_ = ShortLock::of(this);
  LruTable<std::shared_ptr<const Resolution>> entries_;
};

}  // namespace polyop
