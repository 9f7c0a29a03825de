// MindSpore's older name of the header that C++ operator modules include.
#include "ms_extension/api.h"
