// MindSpore's header of the kernel factory.
#include "../../../../../../module/graph.h"
