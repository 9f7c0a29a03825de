// How many threads loops may use, and how many CPUs there are for them.
#pragma once

#include <string>

namespace polyop {

inline constexpr int kMostThreads = 1024;

// What set_thread_count() was given, else what the environment says, else cpus(). The environment
// is read once, when first needed. Never allocates after that.
int thread_count();

// A variable's text, empty where there is none: as the process has it, or as `read` says. Python keeps what
// the user said; libraries write the process's own (MindSpore, when imported: OMP_NUM_THREADS=1).
std::string environment(const char* name);
void set_environment(std::string (*read)(const char* name));

// From now on; 1 to kMostThreads.
void set_thread_count(int count);

// The variable whose value thread_count() could not use, or null.
const char* unusable_variable();

// The CPUs that the process may run on, less what the quota of its control group withholds.
int cpus();

// The CPUs that the quotas of a control group and those around it allow, rounded up; 0: no limit.
// `membership` is /proc/self/cgroup, `mount` is /sys/fs/cgroup.
int quota_cpus(const std::string& membership, const std::string& mount);

// In a child of fork(): its CPUs may be others. Only stores to atomics.
void forget_cpus();

}  // namespace polyop
