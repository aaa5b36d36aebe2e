// Which cores threads run on.
#pragma once

#include <vector>

namespace dtrain::cpu {

/// The cores that the calling thread may run on now.
std::vector<int> thread_cores();

/// Binds the calling thread to these cores. Cores that the system refuses leave it where it is: slower at
/// worst.
void bind_thread(const std::vector<int>& cores);

}  // namespace dtrain::cpu
