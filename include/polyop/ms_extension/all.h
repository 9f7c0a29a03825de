// MindSpore's name for the header with everything in it.
#include "api.h"

#include "../module/compat.h"
#include "../module/graph.h"
