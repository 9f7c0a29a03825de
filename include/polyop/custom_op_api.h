// MindSpore's newer name of the header with everything that C++ operator modules use.
#include "ms_extension/all.h"
