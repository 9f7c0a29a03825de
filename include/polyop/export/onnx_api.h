// ONNX Runtime's C interface, version 16 (release 1.16): the parts that are used. They are declared here so
// that building needs no file of ONNX Runtime. Functions never change their slot in the table; new ones are
// added at its end. A function that returns a Status returns null on success. Source: the interface that ONNX
// Runtime documents in onnxruntime_c_api.h.
#ifndef POLYOP_EXPORT_ONNX_API_H
#define POLYOP_EXPORT_ONNX_API_H

#include <cstddef>
#include <cstdint>

namespace polyop::ort {

constexpr uint32_t kVersion = 16;

struct Allocator;
struct Context;  // of one run of a node
struct Domain;
struct Info;  // a node whose kernel is created
struct Environment;
struct Options;
struct Session;
struct Status;
struct TensorInfo;
struct Value;

struct Api;

enum { kFailed = 1 };                // the code of a Status
enum { kUnknown = 0, kString = 8 };  // a dtype
enum { kVariadic = 2 };              // how an input or output is passed

// An operator, as a session sees it. The _unchecked functions cannot report an error and are not used.
struct Operator {
  uint32_t version;
  void* (*create_unchecked)(const Operator*, const Api*, const Info*);
  const char* (*name)(const Operator*);
  const char* (*provider)(const Operator*);
  int (*input_type)(const Operator*, size_t);
  size_t (*input_count)(const Operator*);
  int (*output_type)(const Operator*, size_t);
  size_t (*output_count)(const Operator*);
  void (*compute_unchecked)(void*, Context*);
  void (*destroy)(void* kernel);
  int (*input_kind)(const Operator*, size_t);
  int (*output_kind)(const Operator*, size_t);
  int (*input_memory)(const Operator*, size_t);
  int (*min_inputs)(const Operator*);
  int (*inputs_homogeneous)(const Operator*);
  int (*min_outputs)(const Operator*);
  int (*outputs_homogeneous)(const Operator*);
  Status* (*create)(const Operator*, const Api*, const Info*, void** kernel);
  Status* (*compute)(void* kernel, Context*);
};

using Unused = void*;

struct Api {
  Status* (*create_status)(int code, const char* words);
  Unused unused_1;
  const char* (*words)(const Status*);
  Status* (*create_environment)(int log_severity, const char* name, Environment** result);
  Unused unused_4[3];
  Status* (*create_session)(const Environment*, const char* path, const Options*, Session** result);
  Unused unused_8;
  Status* (*run)(Session*, const void* options, const char* const* input_names, const Value* const* inputs,
                 size_t input_count, const char* const* output_names, size_t output_count, Value** outputs);
  Status* (*create_options)(Options** result);
  Unused unused_11[15];
  Status* (*create_domain)(const char* name, Domain** result);
  Status* (*add_operator)(Domain*, const Operator*);
  Status* (*add_domain)(Options*, Domain*);
  Status* (*load_operators)(Options*, const char* library, void** handle);
  Unused unused_30[18];
  Status* (*create_tensor)(Allocator*, const int64_t* sizes, size_t ndim, int type, Value** result);
  Unused unused_49[2];
  Status* (*data)(Value*, void** data);
  Unused unused_52;
  Status* (*string_bytes)(const Value*, size_t* bytes);
  Status* (*strings)(const Value*, void* bytes, size_t size, size_t* starts, size_t count);
  Unused unused_55[5];
  Status* (*element_type)(const TensorInfo*, int* type);
  Status* (*ndim)(const TensorInfo*, size_t* count);
  Status* (*shape)(const TensorInfo*, int64_t* sizes, size_t count);
  Unused unused_63[2];
  Status* (*tensor_info)(const Value*, TensorInfo** result);
  Unused unused_66[12];
  Status* (*allocator)(Allocator** result);
  Unused unused_79[6];
  Status* (*read_float)(const Info*, const char* name, float* value);
  Status* (*read_int)(const Info*, const char* name, int64_t* value);
  Status* (*read_string)(const Info*, const char* name, char* text, size_t* size);
  Status* (*input_number)(const Context*, size_t* count);
  Status* (*output_number)(const Context*, size_t* count);
  Status* (*input)(const Context*, size_t number, const Value** result);
  Status* (*output)(Context*, size_t number, const int64_t* sizes, size_t ndim, Value** result);
  Unused unused_92;
  void (*release_status)(Status*);
  Unused unused_94;
  void (*release_session)(Session*);
  void (*release_value)(Value*);
  Unused unused_97[2];
  void (*release_tensor_info)(TensorInfo*);
  Unused unused_100[62];
  Status* (*read_floats)(const Info*, const char* name, float* values, size_t* count);
  Status* (*read_ints)(const Info*, const char* name, int64_t* values, size_t* count);
  Unused unused_164[66];
  Status* (*node_inputs)(const Info*, size_t* count);
  Unused unused_231[5];
  Status* (*read_tensor)(const Info*, const char* name, Allocator*, Value** result);
};

constexpr size_t slot(size_t bytes) { return bytes / sizeof(void*); }
static_assert(slot(offsetof(Api, words)) == 2 && slot(offsetof(Api, run)) == 9 &&
              slot(offsetof(Api, create_domain)) == 26 && slot(offsetof(Api, create_tensor)) == 48 &&
              slot(offsetof(Api, data)) == 51 && slot(offsetof(Api, element_type)) == 60 &&
              slot(offsetof(Api, tensor_info)) == 65 && slot(offsetof(Api, allocator)) == 78 &&
              slot(offsetof(Api, read_float)) == 85 && slot(offsetof(Api, release_status)) == 93 &&
              slot(offsetof(Api, release_value)) == 96 && slot(offsetof(Api, release_tensor_info)) == 99 &&
              slot(offsetof(Api, read_floats)) == 162 && slot(offsetof(Api, node_inputs)) == 230 &&
              slot(offsetof(Api, read_tensor)) == 236);

struct Base {  // what ONNX Runtime passes to a library of operators
  const Api* (*api)(uint32_t version);
  const char* (*version)();
};

}  // namespace polyop::ort

#endif
