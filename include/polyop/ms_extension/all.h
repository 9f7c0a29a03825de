// MindSpore's name for the header with everything in it.
#include "../module/compat.h"
#include "../module/graph.h"
#include "api.h"
