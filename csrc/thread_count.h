// How many threads loops may use, and how many CPUs there are for them.
#pragma once

#include <string>

namespace polyop {

inline constexpr int kMostThreads = 1024;

// What set_thread_count() was given, else what the environment says, else cpus(). The environment
// is read once per process, when first needed. Never allocates after that.
int thread_count();

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
void forget_thread_count();

}  // namespace polyop
