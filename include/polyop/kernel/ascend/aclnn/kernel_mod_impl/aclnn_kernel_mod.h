// MindSpore's header of AclnnKernelMod.
#include "../../../../module/graph.h"
