// The layouts of polyop/abi.h, polyop/module_abi.h, polyop/parallel.h and polyop/loops/stop.h, frozen:
// compiling this file is the test.
#include <cstddef>
#include <type_traits>

#include "polyop/abi.h"
#include "polyop/module_abi.h"
#include "threads.h"  // polyop/parallel.h without its hooks

static_assert(POLYOP_ABI_VERSION == 1, "a new version needs its own rows below");
static_assert(sizeof(void*) == 8, "64-bit platforms only");

static_assert(offsetof(polyop_extra, abi_version) == 0);
static_assert(offsetof(polyop_extra, size) == 4);
static_assert(offsetof(polyop_extra, functions) == 8);
static_assert(offsetof(polyop_extra, state) == 16);
static_assert(sizeof(polyop_extra) == 24);

static_assert(offsetof(polyop_extra_functions, attribute) == 0);
static_assert(offsetof(polyop_extra_functions, set_workspaces) == 8);
static_assert(offsetof(polyop_extra_functions, workspaces) == 16);
static_assert(offsetof(polyop_extra_functions, set_kernel_data) == 24);
static_assert(offsetof(polyop_extra_functions, kernel_data) == 32);
static_assert(offsetof(polyop_extra_functions, set_error) == 40);
static_assert(sizeof(polyop_extra_functions) == 48);

static_assert(offsetof(polyop_attribute, kind) == 0);
static_assert(offsetof(polyop_attribute, depth) == 4);
static_assert(offsetof(polyop_attribute, count) == 8);
static_assert(offsetof(polyop_attribute, ints) == 16);
static_assert(offsetof(polyop_attribute, floats) == 24);
static_assert(offsetof(polyop_attribute, strings) == 32);
static_assert(offsetof(polyop_attribute, rows) == 40);
static_assert(offsetof(polyop_attribute, row_lengths) == 48);
static_assert(sizeof(polyop_attribute) == 56);

static_assert(POLYOP_NONE == 0 && POLYOP_BOOL == 1 && POLYOP_INT == 2 && POLYOP_FLOAT == 3 &&
              POLYOP_STRING == 4);

static_assert(POLYOP_MODULE_VERSION == 1, "a new version needs its own rows below");

static_assert(offsetof(polyop_tensor, type_id) == 0 && offsetof(polyop_tensor, device_type) == 4);
static_assert(offsetof(polyop_tensor, device_index) == 8 && offsetof(polyop_tensor, ndim) == 12);
static_assert(offsetof(polyop_tensor, shape) == 16 && offsetof(polyop_tensor, strides) == 24);
static_assert(offsetof(polyop_tensor, offset) == 32 && offsetof(polyop_tensor, numel) == 40);
static_assert(offsetof(polyop_tensor, itemsize) == 48 && offsetof(polyop_tensor, contiguous) == 52);
static_assert(offsetof(polyop_tensor, needs_gradient) == 56 && sizeof(polyop_tensor) == 64);

static_assert(offsetof(polyop_value, kind) == 0 && offsetof(polyop_value, count) == 8);
static_assert(offsetof(polyop_value, as) == 16 && sizeof(polyop_value) == 24);
static_assert(POLYOP_VALUE_NONE == 0 && POLYOP_VALUE_BOOL == 1 && POLYOP_VALUE_INT == 2 &&
              POLYOP_VALUE_FLOAT == 3 && POLYOP_VALUE_STRING == 4 && POLYOP_VALUE_TENSOR == 5 &&
              POLYOP_VALUE_LIST == 6);

static_assert(offsetof(polyop_node, state) == 8 && offsetof(polyop_node, destroy) == 16);
static_assert(offsetof(polyop_node, input_count) == 24 && offsetof(polyop_node, inputs) == 32);
static_assert(offsetof(polyop_node, output_count) == 40 && offsetof(polyop_node, outputs) == 48);
static_assert(offsetof(polyop_node, non_differentiable) == 56 && offsetof(polyop_node, dirty_count) == 64);
static_assert(offsetof(polyop_node, dirty) == 72 && offsetof(polyop_node, materialize) == 80);
static_assert(offsetof(polyop_node, saved_count) == 88 && offsetof(polyop_node, saved) == 96);
static_assert(offsetof(polyop_node, set_saved) == 104 && offsetof(polyop_node, backward) == 112);
static_assert(sizeof(polyop_node) == 120);

static_assert(offsetof(polyop_module_functions, retain) == 8);
static_assert(offsetof(polyop_module_functions, release) == 16);
static_assert(offsetof(polyop_module_functions, empty) == 24);
static_assert(offsetof(polyop_module_functions, view) == 32);
static_assert(offsetof(polyop_module_functions, contiguous) == 40);
static_assert(offsetof(polyop_module_functions, data) == 48);
static_assert(offsetof(polyop_module_functions, fill) == 56);
static_assert(offsetof(polyop_module_functions, launch) == 64);
static_assert(offsetof(polyop_module_functions, begin) == 72);
static_assert(offsetof(polyop_module_functions, end) == 80);
static_assert(offsetof(polyop_module_functions, stream) == 88);
static_assert(offsetof(polyop_module_functions, recording) == 96);
static_assert(offsetof(polyop_module_functions, record) == 104);
static_assert(offsetof(polyop_module_functions, deriving) == 112);
static_assert(offsetof(polyop_module_functions, error) == 120);
static_assert(offsetof(polyop_module_functions, fail) == 128);
static_assert(offsetof(polyop_module_functions, wrote) == 136);
static_assert(offsetof(polyop_module_functions, left) == 144);

static_assert(offsetof(polyop_opencl_memory, offset) == 8 && sizeof(polyop_opencl_memory) == 16);

static_assert(offsetof(polyop_function, schema) == 8 && offsetof(polyop_function, doc) == 16);
static_assert(offsetof(polyop_function, target) == 24 && offsetof(polyop_function, call) == 32);
static_assert(offsetof(polyop_function, free_result) == 40 && sizeof(polyop_function) == 48);

static_assert(offsetof(polyop_module_table, version) == 0 && offsetof(polyop_module_table, name) == 8);
static_assert(offsetof(polyop_module_table, count) == 16 && offsetof(polyop_module_table, functions) == 24);
static_assert(offsetof(polyop_module_table, problem) == 32 && sizeof(polyop_module_table) == 40);

static_assert(std::is_same_v<polyop_body, void (*)(void*, int64_t, int64_t, int)>);
static_assert(
    std::is_same_v<polyop_parallel_fn, int (*)(polyop_body, void*, int64_t, int64_t, int64_t, int)>);
static_assert(std::is_same_v<polyop_threads_fn, int (*)()>);
static_assert(std::is_same_v<polyop_stop_fn, int (*)()>);
