// The one lock around libhdf5, which is not thread safe as most systems build it.
#pragma once

#include <mutex>

namespace dtrain {

/// Whoever calls libhdf5, in whichever folder, holds this mutex meanwhile.
std::mutex& hdf5_mutex();

}  // namespace dtrain
