// Runs blocks of work on as many threads as there are cores.
#pragma once

#include <cstdint>
#include <functional>

namespace dtrain {

/// Calls work(0), work(1), ..., work(count - 1) on several threads. The calls are started in this order and
/// must not depend on each other. Returns after all started calls have ended. If calls failed, rethrows the
/// error of the failed call with the lowest block index.
void run_blocks(int64_t count, const std::function<void(int64_t block)>& work);

}  // namespace dtrain
