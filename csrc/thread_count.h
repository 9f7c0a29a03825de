// How many threads a loop may use, and how many CPUs the process has.
#pragma once

#include <string>

namespace polyop {

inline constexpr int kMaxThreads = 1024;

// The value of set_thread_count(), else of the environment (POLYOP_NUM_THREADS, then OMP_NUM_THREADS), else
// cpus(). The environment is read once, at the first call. Later calls allocate nothing.
int thread_count();

// The text of a variable in the process's environment; empty when it is not set.
std::string process_variable(const char* name);

// Makes `read` the source of variables in place of process_variable(). Python's os.environ has what the user
// set; libraries overwrite the process's own (MindSpore sets OMP_NUM_THREADS=1 when it is imported).
void set_environment(std::string (*read)(const char* name));

// Sets the count for loops that start from now on; it must be 1 to kMaxThreads.
void set_thread_count(int count);

struct UnusableVariable {
  const char* variable;
  std::string text;
};

// The variable that thread_count() reads, when its text is no usable count; else null.
const UnusableVariable* unusable_variable();

// The number of CPUs that the process may use: by its affinity mask and the quotas of its control groups.
int cpus();

// The number of CPUs that the quotas of a control group and its parents allow, rounded up; 0: no limit.
// `membership` is the file /proc/self/cgroup, `mount` the folder /sys/fs/cgroup.
int quota_cpus(const std::string& membership, const std::string& mount);

// Makes cpus() count again. For a child of fork(), whose CPUs may differ; only stores to atomics.
void forget_cpus();

}  // namespace polyop
