// MindSpore's header of its own tensors.
#include "../module/value.h"
