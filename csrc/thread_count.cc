#include "thread_count.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace polyop {

namespace {

std::atomic<int> chosen_count{0};        // set_thread_count(); 0: it was not called
std::atomic<int> environment_count{-1};  // 0: no usable variable, -1: not read yet
std::atomic<int> cached_cpus{0};
std::atomic<const UnusableVariable*> unusable{nullptr};

struct Variable {
  const char* name;
  bool list;  // a list of numbers, of which the first counts
};

constexpr Variable kVariables[] = {{"POLYOP_NUM_THREADS", false}, {"OMP_NUM_THREADS", true}};

// The number that a text begins with, or 0 when it is not a usable count.
int parse_count(const char* text, bool list) {
  char* rest = nullptr;
  errno = 0;
  const long value = std::strtol(text, &rest, 10);
  while (*rest == ' ' || *rest == '\t') ++rest;
  const bool ends = *rest == '\0' || (list && *rest == ',');
  return rest != text && ends && errno == 0 && value >= 1 && value <= kMaxThreads ? static_cast<int>(value)
                                                                                  : 0;
}

std::string (*read_variable)(const char*) = &process_variable;

int count_from_environment() {
  for (const Variable& variable : kVariables) {
    const std::string text = read_variable(variable.name);
    if (text.empty()) continue;
    const int count = parse_count(text.c_str(), variable.list);
    if (count == 0) unusable.store(new UnusableVariable{variable.name, text});  // never freed
    return count;
  }
  return 0;
}

// The CPUs that one control group allows; 0: no limit. Version 2 has "<quota|max> <period>" in one file,
// version 1 has a file for each.
double group_cpus(const std::string& folder) {
  std::string quota;
  double period = 0;
  std::ifstream both(folder + "/cpu.max");
  if (!(both >> quota >> period)) {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  const double allowed = std::atof(quota.c_str());  // "max" is 0, and version 1 says -1
  return allowed > 0 && period > 0 ? allowed / period : 0;
}

bool has_cpu(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "cpu") return true;
  }
  return controllers.empty();  // version 2: one tree for all
}

}  // namespace

int quota_cpus(const std::string& membership, const std::string& mount) {
  double smallest = 0;
  std::ifstream lines(membership);
  for (std::string tree, controllers, path; std::getline(lines, tree, ':') &&
                                            std::getline(lines, controllers, ':') &&
                                            std::getline(lines, path);) {
    if (!has_cpu(controllers)) continue;
    const std::string root = controllers.empty() ? mount : mount + "/cpu";
    // up to the root: a container sees its own group there, not at the path that the host uses
    for (;; path.resize(path.rfind('/'))) {
      const double allowed = group_cpus(root + path);
      if (allowed > 0) smallest = smallest > 0 ? std::min(smallest, allowed) : allowed;
      if (path.find('/') == std::string::npos) break;
    }
  }
  return static_cast<int>(std::ceil(smallest));
}

int cpus() {
  if (const int cached = cached_cpus.load(std::memory_order_relaxed)) return cached;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // of the main thread: the calling thread may be pinned
  int count = sched_getaffinity(getpid(), sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 0;
  if (count == 0)
    count = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // more CPUs than a cpu_set_t holds
  const int quota = quota_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota > 0) count = std::min(count, quota);
  count = std::clamp(count, 1, kMaxThreads);
  cached_cpus.store(count, std::memory_order_relaxed);
  return count;
}

int thread_count() {
  if (const int count = chosen_count.load(std::memory_order_relaxed)) return count;
  int count = environment_count.load(std::memory_order_relaxed);
  if (count < 0) environment_count.store(count = count_from_environment(), std::memory_order_relaxed);
  return count > 0 ? count : cpus();
}

std::string process_variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void set_environment(std::string (*read)(const char* name)) { read_variable = read; }

void set_thread_count(int count) { chosen_count.store(count, std::memory_order_relaxed); }

const UnusableVariable* unusable_variable() {
  if (chosen_count.load(std::memory_order_relaxed) != 0) return nullptr;
  thread_count();
  return unusable.load();
}

void forget_cpus() { cached_cpus.store(0, std::memory_order_relaxed); }

}  // namespace polyop
