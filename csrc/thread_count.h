// How many threads loops may use, and how many CPUs there are for them.
#pragma once

#include <string>

namespace polyop {

inline constexpr int kMostThreads = 1024;

// What set_thread_count() was given, else what the environment says, else cpus(). The environment
// is read once, when first needed. Never allocates after that.
int thread_count();

// A variable's text as the process has it, empty where there is none.
std::string process_variable(const char* name);

// Lets `read` say what the variables are instead. Python keeps what the user said; libraries write the
// process's own (MindSpore, when imported: OMP_NUM_THREADS=1).
void set_environment(std::string (*read)(const char* name));

// From now on; 1 to kMostThreads.
void set_thread_count(int count);

struct Unusable {
  const char* variable;
  std::string text;
};

// What thread_count() found in the environment and could not use, or null.
const Unusable* unusable_variable();

// The CPUs that the process may run on, less what the quota of its control group withholds.
int cpus();

// The CPUs that the quotas of a control group and those around it allow, rounded up; 0: no limit.
// `membership` is /proc/self/cgroup, `mount` is /sys/fs/cgroup.
int quota_cpus(const std::string& membership, const std::string& mount);

// In a child of fork(): its CPUs may be others. Only stores to atomics.
void forget_cpus();

}  // namespace polyop
