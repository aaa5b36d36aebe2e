#include "base/hdf5_mutex.h"

namespace dtrain {

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace dtrain
