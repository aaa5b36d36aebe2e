// Stands in for the CUDA folder where there is no CUDA toolkit.
#include "device/device.h"

namespace dtrain {

GpuPresence gpu_presence() {
  return {0, "built without CUDA"};
}

}  // namespace dtrain
