// An operator as a runtime without Python calls it: by a text, on memory that it gives.
//
// XLA's custom calls and MindSpore's aot launches come here. What the text means is settled in
// Python (polyop.call.foreign), once for each set of shapes; a native kernel then runs without
// Python's lock.
#pragma once

#include <Python.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "key.h"
#include "launch.h"

namespace polyop {

// Memory for workspaces, of the device that the tensors are on; freed after the call.
struct Scratch {
  virtual void* allocate(size_t bytes) = 0;  // null: there is none
  virtual ~Scratch() = default;
};

// The inputs that are present, then all outputs.
using Views = Small<View, 16>;

class Target {
 public:
  // The target of a text, made on first use; it stays for the life of the process. Any thread.
  static Target& of(std::string_view text);

  // Run on tensors that are all dense, `inputs` of them inputs. Returns the words of the error, or
  // an empty text. Any thread, with Python's lock or without.
  std::string run(const Views& tensors, size_t inputs, void* stream, Scratch& scratch);

  // The Python function that settles a text for given tensors; a new reference is kept. It is called
  // with (text, [(shape, row of dtypes(), device)], inputs) and gives
  // (Launch or a function of arrays, parameters, written, whether it may be kept, failed):
  // parameters are numbers of tensors in the kernel's order, -1 for an absent one; written are pairs
  // of an input and the output that takes its place; failed(code, text, threw, kernel) raises.
  static void set_resolver(PyObject* resolver, const Launch* (*unwrap)(PyObject*));

 private:
  struct Ready;
  explicit Target(std::string_view text) : text_(text) {}
  std::shared_ptr<const Ready> find(const Key& key);
  std::shared_ptr<const Ready> resolve(const Views& tensors, size_t inputs, const Key& key,
                                       std::string* error);
  std::string text_;
  std::mutex lock_;
  std::vector<std::pair<std::vector<uint64_t>, std::shared_ptr<const Ready>>> entries_;
  size_t oldest_ = 0;
};

}  // namespace polyop
