#include "data/loader/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/threads.h"
#include "device/device.h"

namespace dtrain {

void run_blocks(int64_t count, const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0}, end{count};  // blocks after a failed one are not started
  std::mutex mutex;
  std::exception_ptr error;
  const auto run = [&] {
    for (int64_t block = next++; block < end; block = next++) {
      try {
        work(block);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (block >= end) continue;
        end = block;
        error = std::current_exception();
      }
    }
  };
  const auto threads = std::min<int64_t>(static_cast<int64_t>(available_cores().size()), count);
  std::vector<std::thread> others;
  try {
    while (static_cast<int64_t>(others.size()) + 1 < threads) others.push_back(start_thread("reading", run));
  } catch (...) {  // fewer threads are only slower
  }
  run();
  for (std::thread& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace dtrain
