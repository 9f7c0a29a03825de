// Runs loops on the core's threads without Python, for ThreadSanitizer. test_thread_processes.py builds and runs it.
//   threads_driver                       loops of all kinds, from several threads at once
//   threads_driver quota <file> <folder>  prints quota_cpus()
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "thread_count.h"
#include "threads.h"

namespace {

struct Job {
  std::vector<int64_t> hits;     // how often each iteration ran; not atomic, so that races are found
  std::vector<int64_t> by_part;  // iterations of each part; not atomic either
  std::vector<int64_t> nested = {};
};

void count(void* context, int64_t begin, int64_t end, int thread) {
  Job& job = *static_cast<Job*>(context);
  for (int64_t i = begin; i < end; ++i) ++job.hits[static_cast<size_t>(i)];
  job.by_part[static_cast<size_t>(thread)] += end - begin;
}

void count_nested(void* context, int64_t begin, int64_t end, int thread) {
  count(context, begin, end, thread);
  Job inner{std::vector<int64_t>(10), std::vector<int64_t>(3)};
  polyop::parallel(count, &inner, 0, 10, 0, 3);
  for (const int64_t hit : inner.hits) static_cast<Job*>(context)->nested[static_cast<size_t>(thread)] += hit;
}

bool run(int64_t n, int64_t chunk, int threads, bool nested) {
  Job job{std::vector<int64_t>(static_cast<size_t>(n)), std::vector<int64_t>(16), std::vector<int64_t>(16)};
  const int used = polyop::parallel(nested ? count_nested : count, &job, 0, n, chunk, threads);
  int64_t total = 0;
  for (const int64_t hit : job.hits) {
    if (hit != 1) return false;
  }
  for (const int64_t part : job.by_part) total += part;
  for (const int64_t sum : job.nested) {
    if (sum % 10 != 0) return false;
  }
  return total == n && used <= threads;
}

bool work(int turns) {
  bool right = true;
  for (int turn = 0; turn < turns; ++turn) {
    right &= run(1 + turn % 40, turn % 3 == 0 ? 1 + turn % 5 : 0, 1 + turn % 7, turn % 4 == 0);
    if (turn % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that workers fall asleep
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "quota") == 0) {
    std::printf("%d\n", polyop::quota_cpus(argv[2], argv[3]));
    return 0;
  }
  bool right = true;
  for (const int count : {2, 4, 3}) {
    polyop::set_thread_count(count);
    right &= work(2000);
    std::vector<std::thread> callers;
    std::vector<char> answers(3);
    for (char& answer : answers) callers.emplace_back([&answer] { answer = work(1000); });
    right &= work(1000);
    for (std::thread& caller : callers) caller.join();
    for (const char answer : answers) right &= answer != 0;
  }
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
