// Binds what the other sources of the module register.
#include "custom_op_api.h"

PYBIND11_MODULE(MS_EXTENSION_NAME, m) { ModuleRegistry::Instance().RegisterAll(m); }
