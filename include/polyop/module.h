// The header of MindSpore's examples that collects what several sources bind.
#include "module/graph.h"
