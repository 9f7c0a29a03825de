// Runs a model of ONNX Runtime with the operators of an exported library, without Python.
#include <dlfcn.h>

#include <cstdio>
#include <stdexcept>

#include "polyop/export/onnx_api.h"

namespace ort = polyop::ort;

static const ort::Api* api = nullptr;

static void require(ort::Status* status) {
  if (status == nullptr) return;
  std::printf("%s\n", api->words(status));
  api->release_status(status);
  throw std::runtime_error("refused");
}

// The arguments are the library, and the model.
int main(int, char** arguments) {
  const ort::Base* base = reinterpret_cast<const ort::Base* (*)()>(dlsym(RTLD_DEFAULT, "OrtGetApiBase"))();
  api = base->api(ort::kVersion);
  try {
    ort::Environment* environment = nullptr;
    ort::Options* options = nullptr;
    ort::Session* session = nullptr;
    ort::Allocator* allocator = nullptr;
    ort::Value *input = nullptr, *output = nullptr;
    void *library = nullptr, *data = nullptr;
    require(api->create_environment(4, "test", &environment));  // the log has fatal errors alone
    require(api->create_options(&options));
    require(api->load_operators(options, arguments[1], &library));
    require(api->create_session(environment, arguments[2], options, &session));
    require(api->allocator(&allocator));
    const int64_t sizes[] = {2, 3};
    require(api->create_tensor(allocator, sizes, 2, 1, &input));  // of float32
    require(api->data(input, &data));
    for (int i = 0; i < 6; ++i) static_cast<float*>(data)[i] = static_cast<float>(i);
    const char *input_name = "x", *output_name = "y";
    require(api->run(session, nullptr, &input_name, &input, 1, &output_name, 1, &output));
    require(api->data(output, &data));
    for (int i = 0; i < 6; ++i) std::printf("%g ", static_cast<double>(static_cast<float*>(data)[i]));
    std::puts("");
    api->release_value(output);
    api->release_value(input);
    api->release_session(session);
  } catch (const std::runtime_error&) {
    return 1;
  }
}
