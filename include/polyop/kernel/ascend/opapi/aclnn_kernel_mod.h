// MindSpore's older header of AclnnKernelMod.
#include "../../../module/graph.h"
