// Work that falls into blocks, done by as many threads as there are cores.
#pragma once

#include <cstdint>
#include <functional>

namespace dtrain {

/// Calls work(0), work(1), ..., work(count - 1), begun in this order, by several threads. What they do must
/// not depend on one another. Rethrows the error of the first block that failed, once all that were begun
/// have ended.
void run_blocks(int64_t count, const std::function<void(int64_t block)>& work);

}  // namespace dtrain
