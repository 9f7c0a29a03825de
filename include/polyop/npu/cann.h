// EXEC_NPU_CMD with CANN: looks up the two functions of an operator in CANN's libraries and calls them.
//
// It is tested with a small library of the same interface. It has never run on Ascend hardware.
#ifndef POLYOP_NPU_CANN_H
#define POLYOP_NPU_CANN_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

#include "kinds.h"

namespace polyop::npu {

// CANN's libraries. They are opened at the first call and never closed.
class Cann {
 public:
  static const Cann& get() {
    static const Cann cann;
    return cann;
  }

  void* find(const std::string& name) const {
    for (void* library : libraries_) {
      if (void* symbol = dlsym(library, name.c_str())) {
        return symbol;
      }
    }
    return dlsym(RTLD_DEFAULT, name.c_str());
  }

  bool present() const { return operators_ && find("aclCreateTensor") != nullptr; }

  template <class Result = int, class... Arguments>
  Result call(const std::string& name, Arguments... arguments) const {
    void* symbol = find(name);
    if (symbol == nullptr) {
      refuse(name.c_str(), "is not a function of CANN here\n  searched: " + searched_);
    }
    return reinterpret_cast<Result (*)(Arguments...)>(symbol)(arguments...);
  }

  void check(const std::string& name, int status) const {
    if (status != 0) {
      const char* text =
          find("aclGetRecentErrMsg") != nullptr ? call<const char*>("aclGetRecentErrMsg") : nullptr;
      refuse(name.c_str(),
             "returned " + std::to_string(status) + (text != nullptr ? std::string("\n  ") + text : ""));
    }
  }

 private:
  // Opens the libraries in the order of lookups: authors' operators, then the operators of vendors in the
  // order of config.ini, then CANN's.
  Cann() {
    const std::string custom = "/op_api/lib/libcust_opapi.so";
    for (const std::string& entry : entries("ASCEND_CUSTOM_OPP_PATH", ':')) {
      operators_ |= open(entry + custom);
    }
    for (const std::string& entry : entries("ASCEND_OPP_PATH", ':')) {
      for (const std::string& vendor : vendors(entry + "/vendors/config.ini")) {
        operators_ |= open(entry + "/vendors/" + vendor + custom);
      }
    }
    for (const std::string& entry : entries("ASCEND_HOME_PATH", ':')) {
      std::error_code ignored;
      std::set<std::string> sorted;
      for (const auto& file : std::filesystem::directory_iterator(entry + "/lib64", ignored)) {
        if (file.path().filename().string().rfind("libopapi", 0) == 0) {
          sorted.insert(file.path().string());
        }
      }
      for (const std::string& path : sorted) {
        operators_ |= open(path);
      }
    }
    operators_ |= open("libopapi.so");
    open("libnnopbase.so");
    open("libascendcl.so");
    open("libtorch_npu.so", RTLD_NOLOAD);  // for the current stream, when torch_npu is imported
  }

  bool open(const std::string& path, int more = 0) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | more);
    if (library != nullptr) {
      libraries_.push_back(library);
      searched_ += (searched_.empty() ? "" : ", ") + path;
    }
    return library != nullptr;
  }

  static std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> items;
    std::istringstream stream(text);
    for (std::string item; std::getline(stream, item, separator);) {
      if (!item.empty()) {
        items.push_back(item);
      }
    }
    return items;
  }

  static std::vector<std::string> entries(const char* variable, char separator) {
    const char* value = getenv(variable);
    return split(value != nullptr ? value : "", separator);
  }

  static std::vector<std::string> vendors(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const size_t separator = line.find('=');
      if (line.rfind("load_priority", 0) == 0 && separator != std::string::npos) {
        return split(line.substr(separator + 1), ',');
      }
    }
    return {};
  }

  std::vector<void*> libraries_;
  std::string searched_;
  bool operators_ = false;
};

inline int acl_dtype(const char* name, at::ScalarType dtype) {
  const int32_t row = dtype_with(&DTypeRow::torch, static_cast<int32_t>(dtype));
  const int32_t number = row < 0 ? -1 : kDTypeRows[row].cann;
  if (number < 0) refuse(name, std::string("CANN has no dtype ") + c10::toString(dtype));
  return number;
}

// CANN's objects for the arguments of one call. The destructor destroys them.
class Objects {
 public:
  Objects(const Cann& cann, const char* name) : cann_(cann), name_(name) {}
  Objects(const Objects&) = delete;
  ~Objects() {
    for (auto item = objects_.rbegin(); item != objects_.rend(); ++item) {
      cann_.call("aclDestroy" + item->first, item->second);
    }
  }

  // Converts an argument for CANN's function. Numbers stay as they are; an absent argument becomes null.
  template <class T>
  auto of(const T& value) {
    constexpr Kind kind = kind_of<T>();
    static_assert(kind != Kind::OTHER,
                  "EXEC_NPU_CMD takes tensors, numbers, texts, dtypes, and lists and optionals of these");
    if constexpr (kind == Kind::NONE) {
      return static_cast<void*>(nullptr);
    } else if constexpr (kind == Kind::TENSOR) {
      return value.defined() ? own("Tensor", tensor(value)) : nullptr;
    } else if constexpr (kind == Kind::SCALAR) {
      return scalar(value);
    } else if constexpr (kind == Kind::MAYBE) {
      using Value = std::remove_cv_t<std::remove_reference_t<decltype(*value)>>;
      using Converted = decltype(of(std::declval<const Value&>()));
      return value.has_value() ? of(static_cast<const Value&>(*value)) : Converted();
    } else if constexpr (kind == Kind::LIST) {
      return list(value);
    } else if constexpr (kind == Kind::DTYPE) {
      return acl_dtype(name_, value);
    } else if constexpr (kind == Kind::TEXT) {
      texts_.push_back(std::make_unique<std::string>(value));
      return texts_.back()->c_str();
    } else {
      return value;
    }
  }

  at::Device device{at::kPrivateUse1};

 private:
  void* own(const char* kind, void* object) {
    if (object == nullptr) {
      refuse(name_, std::string("aclCreate") + kind + " returned no object");
    }
    objects_.emplace_back(kind, object);
    return object;
  }

  void* tensor(const at::TensorBase& tensor) {
    check_plain(name_, tensor);
    device = tensor.device();
    const int64_t rank = tensor.dim(),
                  storage = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
    const int format = rank == 3 ? 47 : rank == 4 ? 0 : rank == 5 ? 30 : 2;  // NCL, NCHW, NCDHW, ND
    return cann_.call<void*>("aclCreateTensor", tensor.sizes().data(), static_cast<uint64_t>(rank),
                             acl_dtype(name_, tensor.scalar_type()), tensor.strides().data(),
                             tensor.storage_offset(), format, &storage, static_cast<uint64_t>(1),
                             tensor.storage().mutable_data());
  }

  template <class Number>
  void* scalar_of(Number number, at::ScalarType dtype) {
    return own("Scalar",
               cann_.call<void*>("aclCreateScalar", static_cast<void*>(&number), acl_dtype(name_, dtype)));
  }

  void* scalar(const at::Scalar& scalar) {
    if (scalar.isComplex()) {
      return scalar_of(scalar.toComplexDouble(), at::kComplexDouble);
    }
    if (scalar.isBoolean()) {
      return scalar_of(scalar.toBool(), at::kBool);
    }
    return scalar.isIntegral(false) ? scalar_of(scalar.toLong(), at::kLong)
                                    : scalar_of(scalar.toDouble(), at::kDouble);
  }

  template <class T>
  void* list(const T& list) {
    constexpr Kind kind = kind_of<Item<T>>();
    static_assert(kind == Kind::TENSOR || kind == Kind::TRUTH || kind == Kind::WHOLE || kind == Kind::REAL,
                  "EXEC_NPU_CMD takes lists of tensors, truth values and numbers");
    using Value =
        std::conditional_t<kind == Kind::TENSOR, void*,
                           std::conditional_t<kind == Kind::TRUTH, bool,
                                              std::conditional_t<kind == Kind::WHOLE, int64_t, float>>>;
    constexpr const char* name = kind == Kind::TENSOR  ? "TensorList"
                                 : kind == Kind::TRUTH ? "BoolArray"
                                 : kind == Kind::WHOLE ? "IntArray"
                                                       : "FloatArray";
    const auto items = std::make_unique<Value[]>(list.size() + 1);
    uint64_t count = 0;
    for (const auto& item : list) {
      if constexpr (kind == Kind::TENSOR) {
        items[count++] = item.defined() ? tensor(item) : nullptr;  // the list owns the tensors
      } else {
        items[count++] = static_cast<Value>(item);
      }
    }
    return own(name, cann_.call<void*>(std::string("aclCreate") + name, items.get(), count));
  }

  const Cann& cann_;
  const char* name_;
  std::vector<std::pair<std::string, void*>> objects_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

template <class... Arguments>
void run_on_cann(const char* name, bool wait, const Arguments&... arguments) {
  const Cann& cann = Cann::get();
  if (!cann.present()) {
    refuse(name,
           "CANN is not installed: libopapi.so and libnnopbase.so cannot be opened\n"
           "  set ASCEND_HOME_PATH, or rehearse on the CPU: POLYOP_ASCEND=rehearse");
  }
  Objects objects(cann, name);
  uint64_t size = 0;
  void *executor = nullptr, *stream = nullptr;
  const std::tuple converted{objects.of(arguments)...};
  const std::string workspace_function = std::string(name) + "GetWorkspaceSize";
  cann.check(
      workspace_function,
      std::apply([&](auto... values) { return cann.call(workspace_function, values..., &size, &executor); },
                 converted));
  at::Tensor workspace;  // PyTorch frees it in the order of the stream
  if (size != 0) {
    workspace =
        at::empty({static_cast<int64_t>(size)}, at::TensorOptions().device(objects.device).dtype(at::kByte));
  }
  const int32_t index = objects.device.index();
  cann.check("stream", cann.call("aoti_torch_get_current_npu_stream", index,
                                 &stream));  // after the work in torch_npu's queue
  cann.check(name,
             cann.call(name, size != 0 ? workspace.mutable_data_ptr() : nullptr, size, executor, stream));
  if (wait) {
    cann.check("aclrtSynchronizeStream", cann.call("aclrtSynchronizeStream", stream));
  }
}

}  // namespace polyop::npu

#endif
