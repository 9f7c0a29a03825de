// MindSpore's header of streams, which older operators include.
#include "../module/compat.h"
