// EXEC_NPU_CMD with CANN: the two phases of an operator, found by name in its libraries.
//
// This has been run against a small library of the same interface, and never on Ascend hardware.
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

// CANN's libraries, opened at the first call and never closed.
class Cann {
 public:
  static const Cann& get() {
    static const Cann cann;
    return cann;
  }

  void* find(const std::string& name) const {
    for (void* library : libraries_) {
      if (void* found = dlsym(library, name.c_str())) {
        return found;
      }
    }
    return dlsym(RTLD_DEFAULT, name.c_str());
  }

  bool present() const { return operators_ && find("aclCreateTensor") != nullptr; }

  template <class Result = int, class... Arguments>
  Result call(const std::string& name, Arguments... arguments) const {
    void* found = find(name);
    if (found == nullptr) {
      refuse(name.c_str(), "is not a function of CANN here\n  searched: " + searched_);
    }
    return reinterpret_cast<Result (*)(Arguments...)>(found)(arguments...);
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
  // Authors' operators first, then those installed beside CANN's in the order of config.ini, then CANN's.
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
    open("libtorch_npu.so", RTLD_NOLOAD);  // for the stream: there where it is imported
  }

  bool open(const std::string& path, int more = 0) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | more);
    if (library != nullptr) {
      libraries_.push_back(library);
      searched_ += (searched_.empty() ? "" : ", ") + path;
    }
    return library != nullptr;
  }

  static std::vector<std::string> split(const std::string& text, char mark) {
    std::vector<std::string> made;
    std::istringstream stream(text);
    for (std::string item; std::getline(stream, item, mark);) {
      if (!item.empty()) {
        made.push_back(item);
      }
    }
    return made;
  }

  static std::vector<std::string> entries(const char* variable, char mark) {
    const char* value = getenv(variable);
    return split(value != nullptr ? value : "", mark);
  }

  static std::vector<std::string> vendors(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const size_t mark = line.find('=');
      if (line.rfind("load_priority", 0) == 0 && mark != std::string::npos) {
        return split(line.substr(mark + 1), ',');
      }
    }
    return {};
  }

  std::vector<void*> libraries_;
  std::string searched_;
  bool operators_ = false;
};

inline int acl_dtype(const char* name, at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return 0;
    case at::kHalf:
      return 1;
    case at::kChar:
      return 2;
    case at::kInt:
      return 3;
    case at::kByte:
      return 4;
    case at::kShort:
      return 6;
    case at::kLong:
      return 9;
    case at::kDouble:
      return 11;
    case at::kBool:
      return 12;
    case at::kComplexFloat:
      return 16;
    case at::kComplexDouble:
      return 17;
    case at::kBFloat16:
      return 27;
    default:
      refuse(name, std::string("CANN has no dtype ") + c10::toString(dtype));
  }
}

// CANN's objects of one call, destroyed with it.
class Objects {
 public:
  Objects(const Cann& cann, const char* name) : cann_(cann), name_(name) {}
  Objects(const Objects&) = delete;
  ~Objects() {
    for (auto item = made_.rbegin(); item != made_.rend(); ++item) {
      cann_.call("aclDestroy" + item->first, item->second);
    }
  }

  // Returns what the first phase takes: numbers as they are, a null pointer for what is absent.
  template <class T>
  auto of(const T& given) {
    constexpr Kind kind = kind_of<T>();
    static_assert(kind != Kind::OTHER,
                  "EXEC_NPU_CMD takes tensors, numbers, texts, dtypes, and lists and optionals of these");
    if constexpr (kind == Kind::NONE) {
      return static_cast<void*>(nullptr);
    } else if constexpr (kind == Kind::TENSOR) {
      return given.defined() ? own("Tensor", tensor(given)) : nullptr;
    } else if constexpr (kind == Kind::SCALAR) {
      return scalar(given);
    } else if constexpr (kind == Kind::MAYBE) {
      using Held = std::remove_cv_t<std::remove_reference_t<decltype(*given)>>;
      using Made = decltype(of(std::declval<const Held&>()));
      return given.has_value() ? of(static_cast<const Held&>(*given)) : Made();
    } else if constexpr (kind == Kind::LIST) {
      return list(given);
    } else if constexpr (kind == Kind::DTYPE) {
      return acl_dtype(name_, given);
    } else if constexpr (kind == Kind::TEXT) {
      texts_.push_back(std::make_unique<std::string>(given));
      return texts_.back()->c_str();
    } else {
      return given;
    }
  }

  at::Device device{at::kPrivateUse1};

 private:
  void* own(const char* kind, void* made) {
    if (made == nullptr) {
      refuse(name_, std::string("aclCreate") + kind + " gave no object");
    }
    made_.emplace_back(kind, made);
    return made;
  }

  void* tensor(const at::TensorBase& given) {
    check_plain(name_, given);
    device = given.device();
    const int64_t rank = given.dim(),
                  storage = static_cast<int64_t>(given.storage().nbytes() / given.itemsize());
    const int format = rank == 3 ? 47 : rank == 4 ? 0 : rank == 5 ? 30 : 2;  // NCL, NCHW, NCDHW, ND
    return cann_.call<void*>("aclCreateTensor", given.sizes().data(), static_cast<uint64_t>(rank),
                             acl_dtype(name_, given.scalar_type()), given.strides().data(),
                             given.storage_offset(), format, &storage, static_cast<uint64_t>(1),
                             given.storage().mutable_data());
  }

  template <class Number>
  void* scalar_of(Number number, at::ScalarType dtype) {
    return own("Scalar",
               cann_.call<void*>("aclCreateScalar", static_cast<void*>(&number), acl_dtype(name_, dtype)));
  }

  void* scalar(const at::Scalar& given) {
    if (given.isComplex()) {
      return scalar_of(given.toComplexDouble(), at::kComplexDouble);
    }
    if (given.isBoolean()) {
      return scalar_of(given.toBool(), at::kBool);
    }
    return given.isIntegral(false) ? scalar_of(given.toLong(), at::kLong)
                                   : scalar_of(given.toDouble(), at::kDouble);
  }

  template <class T>
  void* list(const T& given) {
    constexpr Kind kind = kind_of<Item<T>>();
    static_assert(kind == Kind::TENSOR || kind == Kind::TRUTH || kind == Kind::WHOLE || kind == Kind::REAL,
                  "EXEC_NPU_CMD takes lists of tensors, truth values and numbers");
    using Held =
        std::conditional_t<kind == Kind::TENSOR, void*,
                           std::conditional_t<kind == Kind::TRUTH, bool,
                                              std::conditional_t<kind == Kind::WHOLE, int64_t, float>>>;
    constexpr const char* name = kind == Kind::TENSOR  ? "TensorList"
                                 : kind == Kind::TRUTH ? "BoolArray"
                                 : kind == Kind::WHOLE ? "IntArray"
                                                       : "FloatArray";
    const auto items = std::make_unique<Held[]>(given.size() + 1);
    uint64_t count = 0;
    for (const auto& item : given) {
      if constexpr (kind == Kind::TENSOR) {
        items[count++] = item.defined() ? tensor(item) : nullptr;  // the list owns them
      } else {
        items[count++] = static_cast<Held>(item);
      }
    }
    return own(name, cann_.call<void*>(std::string("aclCreate") + name, items.get(), count));
  }

  const Cann& cann_;
  const char* name_;
  std::vector<std::pair<std::string, void*>> made_;
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
  const std::tuple made{objects.of(arguments)...};
  const std::string first = std::string(name) + "GetWorkspaceSize";
  cann.check(first,
             std::apply([&](auto... given) { return cann.call(first, given..., &size, &executor); }, made));
  at::Tensor workspace;  // PyTorch frees it in the order of the stream
  if (size != 0) {
    workspace =
        at::empty({static_cast<int64_t>(size)}, at::TensorOptions().device(objects.device).dtype(at::kByte));
  }
  const int32_t index = objects.device.index();
  cann.check("stream", cann.call("aoti_torch_get_current_npu_stream", index,
                                 &stream));  // after what waits in its queue
  cann.check(name,
             cann.call(name, size != 0 ? workspace.mutable_data_ptr() : nullptr, size, executor, stream));
  if (wait) {
    cann.check("aclrtSynchronizeStream", cann.call("aclrtSynchronizeStream", stream));
  }
}

}  // namespace polyop::npu

#endif
