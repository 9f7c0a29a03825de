// MindSpore's name of the header that includes everything.
#include "../module/compat.h"
#include "../module/graph.h"
#include "api.h"
