// MindSpore's header of OpFuncImpl.
#include "../../module/graph.h"
