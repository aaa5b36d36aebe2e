#include "emulation/queue.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "emulation/memory.h"

namespace dtrain::emulation {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;  // timeout for work that never becomes ready

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  Machine machine;
  uint64_t random = 1;
  std::vector<WorkPtr> runnable;  // work whose dependencies are done
  std::string failure;
  std::set<int> breaking, broken;  // devices
  Counts counts;
};

State& state() {
  static State only;
  return only;
}

thread_local cudaError_t last_error = cudaSuccess;

bool is_ready(const WorkPtr& work) {
  return !state().broken.contains(work->device) && (!work->ready || work->ready());
}

void finish(const WorkPtr& work) {
  work->done = true;
  work->run = {};
  work->ready = {};
  for (const WorkPtr& next : std::exchange(work->next, {})) {
    if (--next->awaited == 0) state().runnable.push_back(next);
  }
}

/// Runs one randomly chosen piece of work that is ready. Returns false if no work is ready.
bool run_one() {
  State& s = state();
  const size_t n = s.runnable.size();
  const size_t first = n > 0 ? random_number() % n : 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t at = (first + i) % n;
    const WorkPtr work = s.runnable[at];
    if (!is_ready(work)) continue;
    if (work->run && s.breaking.erase(work->device) > 0) {
      s.broken.insert(work->device);
      continue;
    }
    s.runnable[at] = s.runnable.back();
    s.runnable.pop_back();
    if (work->run && s.failure.empty() && s.machine.computes) work->run();
    finish(work);
    return true;
  }
  return false;
}

Machine first_machine() {
  Machine machine;
  if (const char* devices = std::getenv("DTRAIN_EMULATED_GPUS")) machine.devices = std::atoi(devices);
  if (const char* seed = std::getenv("DTRAIN_EMULATED_SEED")) machine.seed = std::strtoull(seed, nullptr, 10);
  return machine;
}

void start(const Machine& machine) {
  state().machine = machine;
  state().random = machine.seed;
  start_memory(machine.devices, machine.memory_bytes);
}

}  // namespace

std::unique_lock<std::mutex> lock_machine() {
  static std::once_flag once;
  std::call_once(once, [] { start(first_machine()); });
  return std::unique_lock(state().mutex);
}

const Machine& machine() {
  return state().machine;
}

uint64_t random_number() {
  // SplitMix64.
  uint64_t z = state().random += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

WorkPtr queue_work(int device, std::function<void()> run, const std::vector<WorkPtr>& after,
                   std::function<bool()> ready, const std::function<void()>& queued) {
  if (queued) queued();
  auto work = std::make_shared<Work>();
  work->device = device;
  work->run = std::move(run);
  work->ready = std::move(ready);
  for (const WorkPtr& before : after) {
    if (!before || before->done) continue;
    before->next.push_back(work);
    ++work->awaited;
  }
  if (work->awaited == 0) state().runnable.push_back(work);
  state().changed.notify_all();
  return work;
}

cudaError_t run_until_done(const WorkPtr& work, int device, std::unique_lock<std::mutex>& lock) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (work && !work->done && !state().broken.contains(device)) {
    {
      const Unlocked unlocked;
      bool ran = true;
      while (!work->done && ran) ran = run_one();
    }
    state().changed.notify_all();
    if (work->done) break;
    // The timeout makes the loop check again regularly, because work may also become ready through events
    // outside the queue.
    state().changed.wait_for(lock, 10ms);
    if (!any_broken() && std::chrono::steady_clock::now() > deadline) {
      fail_device("a thread waits, but no queued work can begin");
      break;
    }
  }
  return device_status(device);
}

void run_some() {
  const auto wanted = [] {
    return static_cast<double>(random_number() >> 11) * 0x1p-53 < state().machine.eagerness;
  };
  if (!wanted()) return;
  const Unlocked unlocked;
  while (run_one() && wanted()) {
  }
}

void run_all() {
  const Unlocked unlocked;
  while (run_one()) {
  }
}

void notify_change() {
  state().changed.notify_all();
}

void fail_device(const std::string& what) {
  if (!state().failure.empty()) return;
  std::fprintf(stderr, "emulated device: %s\n", what.c_str());
  state().failure = what;
}

cudaError_t device_status(int device) {
  const bool works = state().failure.empty() && !state().broken.contains(device);
  return works ? cudaSuccess : cudaErrorLaunchFailure;
}

bool any_broken() {
  return !state().broken.empty();
}

void break_device(int device) {
  const auto lock = lock_machine();
  state().breaking.insert(device);
}

void drop_lost_graphs();  // runtime_graphs.cpp

void repair_devices() {
  const auto lock = lock_machine();
  state().breaking.clear();
  if (!any_broken()) return;
  drop_lost_graphs();
  state().broken.clear();
  const bool computes = std::exchange(state().machine.computes, false);
  run_all();
  state().machine.computes = computes;
}

cudaError_t answer(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

std::string take_failure() {
  const auto lock = lock_machine();
  if (state().failure.empty()) state().failure = damaged_memory();
  last_error = cudaSuccess;
  return std::exchange(state().failure, "");
}

Counts& counts() {
  return state().counts;
}

Counts take_counts() {
  const auto lock = lock_machine();
  return std::exchange(state().counts, {});
}

size_t bytes_in_use() {
  const auto lock = lock_machine();
  size_t bytes = 0;
  for (int i = 0; i < machine().devices; ++i)
    bytes += machine().memory_bytes - free_bytes(i) - unasked_bytes(i);
  return bytes;
}

std::string stop_handles();  // runtime_streams.cpp

std::string restart(const Machine& machine) {
  repair_devices();
  const auto lock = lock_machine();
  State& s = state();
  std::string left;
  run_all();
  if (!s.runnable.empty()) left += "queued work that never began\n";
  s.runnable.clear();
  if (!s.failure.empty()) left += std::exchange(s.failure, "") + "\n";
  left += damaged_memory();
  left += stop_handles();
  left += stop_memory();
  stop_devices();
  start(machine);
  return left;
}

}  // namespace dtrain::emulation

extern "C" {

cudaError_t cudaGetLastError() {
  return std::exchange(dtrain::emulation::last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return dtrain::emulation::last_error;
}

}  // extern "C"
