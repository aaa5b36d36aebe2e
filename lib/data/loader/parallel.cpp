#include "data/loader/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>

#include "base/thread_pool.h"
#include "device/device.h"

namespace dtrain {

void run_blocks(int64_t count, const std::function<void(int64_t)>& work) {
  // `end` is lowered to the index of a failed block, so that later blocks are not started.
  std::atomic<int64_t> next{0}, end{count};
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
  ThreadPool others("reading", std::max<int64_t>(threads - 1, 0), 0);
  for (int64_t i = 0; i < others.size(); ++i) others.submit(std::ref(run));
  run();
  others.wait();
  if (error) std::rethrow_exception(error);
}

}  // namespace dtrain
