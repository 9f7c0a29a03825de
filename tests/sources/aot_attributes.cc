// Kernels that read every kind of attribute through AotExtra, keep data and use a workspace. The header is
// chosen when the file is compiled: polyop's, or one with MindSpore's layout.
#include HEADER

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

enum TypeId : int {};

namespace {
int alive = 0;

struct Data : AotKernelData {
  float scale = 0;
  Data() { ++alive; }
  ~Data() override { --alive; }
};

int64_t count_of(int ndim, const int64_t* shape) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
  return count;
}
}  // namespace

extern "C" int data_alive() { return alive; }

// y = x * (the sum of all attributes); the name of `text` is longer than a small string.
extern "C" int SumInit(int* ndims, int64_t** shapes, const char**, AotExtra* extra) {
  auto* data = new Data;
  if (extra->HasAttr("flag") && extra->Attr<bool>("flag")) data->scale += 1;
  data->scale += static_cast<float>(extra->Attr<int64_t>("whole"));
  data->scale += extra->Attr<float>("real");
  data->scale += static_cast<float>(extra->Attr<std::string>("text_whose_name_is_longer_than_16").size());
  for (const int64_t one : extra->Attr<std::vector<int64_t>>("ints")) data->scale += static_cast<float>(one);
  for (const float one : extra->Attr<std::vector<float>>("floats")) data->scale += one;
  for (const auto& row : extra->Attr<std::vector<std::vector<int64_t>>>("rows")) {
    for (const int64_t one : row) data->scale += static_cast<float>(one);
  }
  for (const auto& row : extra->Attr<std::vector<std::vector<float>>>("real_rows")) {
    for (const float one : row) data->scale += one;
  }
  if (extra->HasAttr("absent")) return 7;
  extra->SetKernelData(data);
  extra->SetWorkSpace({static_cast<size_t>(count_of(ndims[0], shapes[0])) * sizeof(float)});
  return extra->WorkSpace().size() == 1 ? 0 : 8;
}

extern "C" int Sum(int nparam, void** params, int* ndims, int64_t** shapes, const char**, void*, void* extra_void) {
  auto* extra = static_cast<AotExtra*>(extra_void);
  const auto* data = static_cast<const Data*>(extra->KernelData());
  if (nparam != 3 || data == nullptr) return 2;
  const auto* x = static_cast<const float*>(params[0]);
  auto *y = static_cast<float*>(params[1]), *workspace = static_cast<float*>(params[2]);
  const int64_t count = count_of(ndims[0], shapes[0]);
  std::memcpy(workspace, x, static_cast<size_t>(count) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) y[i] = workspace[i] * data->scale;
  return 0;
}

extern "C" std::vector<int64_t> SumInferShape(int* ndims, int64_t** shapes, AotExtra* extra) {
  if (!extra->HasAttr("whole")) return {};
  return std::vector<int64_t>(shapes[0], shapes[0] + ndims[0]);
}

extern "C" TypeId SumInferType(std::vector<TypeId> types, AotExtra* extra) {
  return extra->Attr<float>("real") >= 0 ? types.at(0) : TypeId();
}

// No companion: the kernel itself reads an attribute.
extern "C" int Plain(int, void** params, int* ndims, int64_t** shapes, const char**, void*, void* extra) {
  const float by = static_cast<AotExtra*>(extra)->Attr<float>("real");
  for (int64_t i = 0; i < count_of(ndims[0], shapes[0]); ++i) {
    static_cast<float*>(params[1])[i] = static_cast<float*>(params[0])[i] * by;
  }
  return 0;
}
