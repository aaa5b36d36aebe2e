#include "device/cpu/affinity.h"

#include <algorithm>
#include <memory>
#include <new>
#include <sched.h>
#include <thread>

#include "device/device.h"

namespace dtrain {
namespace cpu {
namespace {

// Sets of more than CPU_SETSIZE cores need memory of their own.
constexpr int kMaxCores = 8192;
using Set = std::unique_ptr<cpu_set_t, decltype([](cpu_set_t* set) { CPU_FREE(set); })>;

Set empty_set() {
  Set set(CPU_ALLOC(kMaxCores));
  if (!set) throw std::bad_alloc();
  CPU_ZERO_S(CPU_ALLOC_SIZE(kMaxCores), set.get());
  return set;
}

}  // namespace

std::vector<int> thread_cores() {
  const Set set = empty_set();
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCores);
  std::vector<int> cores;
  if (sched_getaffinity(0, bytes, set.get()) == 0) {
    for (int core = 0; core < kMaxCores; ++core) {
      if (CPU_ISSET_S(static_cast<size_t>(core), bytes, set.get())) cores.push_back(core);
    }
  } else {
    for (int core = 0; core < std::max(1, static_cast<int>(std::thread::hardware_concurrency())); ++core) {
      cores.push_back(core);
    }
  }
  return cores;
}

void bind_thread(const std::vector<int>& cores) {
  const Set set = empty_set();
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCores);
  for (const int core : cores) {
    if (core >= 0 && core < kMaxCores) CPU_SET_S(static_cast<size_t>(core), bytes, set.get());
  }
  sched_setaffinity(0, bytes, set.get());
}

}  // namespace cpu

std::vector<int> available_cores() {
  // Asked once, before any thread is bound: later threads may have inherited a bound thread's core.
  static const std::vector<int> cores = cpu::thread_cores();
  return cores;
}

}  // namespace dtrain
