// MindSpore's header of helpers for infer functions.
#include "../../../module/graph.h"
