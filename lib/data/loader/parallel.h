// Runs blocks of work on as many threads as there are cores.
#pragma once

#include <cstdint>
#include <functional>

namespace dtrain {

/// Calls work(0), work(1), ..., work(count - 1), started in this order, on several threads. The calls must
/// not depend on each other. Waits for all started calls, then rethrows the error of the failed block with
/// the lowest number.
void run_blocks(int64_t count, const std::function<void(int64_t block)>& work);

}  // namespace dtrain
