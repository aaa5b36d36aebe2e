#include "device/cpu/affinity.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <new>
#include <sched.h>
#include <thread>

#include "device/device.h"

namespace dtrain {
namespace cpu {
namespace {

// Maximum number of cores in a set. The sets are allocated dynamically, because cpu_set_t has room for only
// CPU_SETSIZE cores.
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

BoundThread::BoundThread(const std::vector<int>& cores)
    : thread_(std::this_thread::get_id()), before_(thread_cores()) {
  bind_thread(cores);
}

BoundThread::~BoundThread() {
  if (std::this_thread::get_id() == thread_) bind_thread(before_);
}

std::vector<int> parse_core_list(const std::string& text) {
  std::vector<int> cores;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    const auto [after, error] = std::from_chars(at, end, first);
    int last = first;
    at = after;
    if (error == std::errc() && at < end && *at == '-') {
      const auto [after_last, last_error] = std::from_chars(at + 1, end, last);
      if (last_error != std::errc()) return {};
      at = after_last;
    }
    if (error != std::errc() || first < 0 || last < first || last >= kMaxCores) return {};
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (at < end && *at != ',') return {};
    ++at;
  }
  return cores;
}

}  // namespace cpu

std::vector<int> cores_near(const std::string& pci, const std::string& root) {
  std::ifstream file(root + "/sys/bus/pci/devices/" + pci + "/local_cpulist");
  std::string line;
  std::getline(file, line);
  const std::vector<int> near = cpu::parse_core_list(line);
  std::vector<int> cores;
  for (const int core : available_cores())
    if (std::find(near.begin(), near.end(), core) != near.end()) cores.push_back(core);
  return cores.empty() ? available_cores() : cores;
}

std::vector<int> available_cores() {
  // The cores are queried only once, before any thread is bound. A thread that is started later may inherit
  // the affinity of a bound thread, so a later query could return too few cores.
  static const std::vector<int> cores = cpu::thread_cores();
  return cores;
}

}  // namespace dtrain
