// The part of PyTorch's stable C interface that an exported library uses. PyTorch's headers are not needed.
//
// Python loads libtorch without adding it to the global symbols, so weak references would stay null. The
// functions are taken from the libtorch of the process when a library registers its operators.
#ifndef POLYOP_EXPORT_TORCH_API_H
#define POLYOP_EXPORT_TORCH_API_H

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>
#include <type_traits>

#include "polyop/export/operator.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // Arguments and results of a kernel: a number, the bits of a double, or a pointer.
  using StableIValue = uint64_t;
  using BoxedKernel = void (*)(StableIValue*, uint64_t arguments, uint64_t results);

  struct TorchApi {
    using Handle = void*;
    static constexpr uint64_t kVersion = uint64_t{2} << 56 | uint64_t{10} << 48;  // of PyTorch: 2.10

    int (*library_fragment)(const char* space, const char* file, uint32_t line, Handle* library);
    int (*library_impl)(const char* space, const char* key, const char* file, uint32_t line, Handle* library);
    int (*define)(Handle library, const char* schema);
    int (*implement)(Handle library, const char* name, BoxedKernel kernel, uint64_t version);
    int (*empty_strided)(int64_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                         int32_t device_type, int32_t device_index, Handle* tensor);
    int (*delete_tensor)(Handle);
    int (*data)(Handle, void**);
    int (*dim)(Handle, int64_t*);
    int (*sizes)(Handle, int64_t**);
    int (*strides)(Handle, int64_t**);
    int (*dtype)(Handle, int32_t*);
    int (*device_type)(Handle, int32_t*);
    int32_t (*cpu)();
    int32_t (*meta)();
    int (*list_size)(Handle, size_t*);
    int (*list_item)(Handle, size_t, StableIValue*);
    int (*delete_list)(Handle);
    int (*text_size)(Handle, size_t*);
    int (*text)(Handle, const char**);
    int (*delete_text)(Handle);
    int (*delete_value)(StableIValue*);  // or null: PyTorch below 2.13
    int32_t dtypes[kDTypes];             // PyTorch's number of each polyop_dtype; -1 where it has none

    // False if the process has no libtorch, or one that lacks a function: PyTorch below 2.10.
    bool load() {
      void* library = libtorch();
      bool all = library != nullptr;
      const auto bind = [&](auto& function, const char* name, bool required = true) {
        void* symbol = all ? dlsym(library, name) : nullptr;
        function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
        all = all && (symbol != nullptr || !required);
      };
      bind(library_fragment, "aoti_torch_library_init_fragment");
      bind(library_impl, "aoti_torch_library_init_impl");
      bind(define, "aoti_torch_library_def");
      bind(implement, "torch_library_impl");
      bind(empty_strided, "aoti_torch_empty_strided");
      bind(delete_tensor, "aoti_torch_delete_tensor_object");
      bind(data, "aoti_torch_get_data_ptr");
      bind(dim, "aoti_torch_get_dim");
      bind(sizes, "aoti_torch_get_sizes");
      bind(strides, "aoti_torch_get_strides");
      bind(dtype, "aoti_torch_get_dtype");
      bind(device_type, "aoti_torch_get_device_type");
      bind(cpu, "aoti_torch_device_type_cpu");
      bind(meta, "aoti_torch_device_type_meta");
      bind(list_size, "torch_list_size");
      bind(list_item, "torch_list_get_item");
      bind(delete_list, "torch_delete_list");
      bind(text_size, "torch_string_length");
      bind(text, "torch_string_c_str");
      bind(delete_text, "torch_delete_string");
      bind(delete_value, "torch_delete_stable_ivalue", false);
      for (int32_t i = 0; all && i < kDTypes; ++i) dtypes[i] = number_of(library, kDTypeRows[i].name);
      return all;
    }

   private:
    static int32_t number_of(void* library, const std::string& dtype) {
      for (const char* prefix : {"aoti_torch_dtype_", "torch_dtype_"}) {
        if (void* symbol = dlsym(library, (prefix + dtype).c_str())) {
          return reinterpret_cast<int32_t (*)()>(symbol)();
        }
      }
      return -1;
    }

    static void* libtorch() {
      if (dlsym(RTLD_DEFAULT, "aoti_torch_library_def") != nullptr) return dlopen(nullptr, RTLD_LAZY);
      std::string path;
      dl_iterate_phdr(
          [](dl_phdr_info* loaded, size_t, void* result) {
            const char* slash = std::strrchr(loaded->dlpi_name, '/');
            const char* name = slash == nullptr ? loaded->dlpi_name : slash + 1;
            if (std::strncmp(name, "libtorch_cpu.", 13) != 0) return 0;
            *static_cast<std::string*>(result) = loaded->dlpi_name;
            return 1;
          },
          &path);
      return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    }
  };

  inline TorchApi& torch_api() {
    static TorchApi api = {};
    return api;
  }

}  // namespace exported
}  // namespace polyop

#endif
