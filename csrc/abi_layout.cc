// The layout of polyop/abi.h, frozen: compiling this file is the test.
#include <cstddef>

#include "polyop/abi.h"

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
