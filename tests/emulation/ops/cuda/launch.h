// Replaces lib/ops/cuda/launch.h: the include path of the emulation contains this folder before lib. It
// includes everything in that file except launch(). In the emulation, kernels are plain functions.
#pragma once

#define launch launch_on_a_device
#include "../../../../lib/ops/cuda/launch.h"
#undef launch

#include <functional>
#include <tuple>

#include "emulation/grid.h"

namespace dtrain::emulation {

/// Loads the kernel on its first launch on a device. Loading may wait for all devices.
void load_kernel(const void* kernel);
/// Checks the launch as a device does, and enqueues the grid.
cudaError_t enqueue_grid(dim3 blocks, dim3 threads, cudaStream_t stream, size_t argument_bytes,
                         std::function<void(Grid)> run);
void run_checked(const Grid& grid);

}  // namespace dtrain::emulation

namespace dtrain::cuda {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            Arguments&&... arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> values;
  };
  const auto run = [call = Call{kernel, {static_cast<Parameters>(arguments)...}}](emulation::Grid what) {
    what.arguments = &call;
    what.thread = [](const void* opaque) {
      const Call& self = *static_cast<const Call*>(opaque);
      std::apply(self.kernel, self.values);
    };
    emulation::run_checked(what);
  };
  emulation::load_kernel(reinterpret_cast<const void*>(kernel));
  check(emulation::enqueue_grid(grid, block, stream, (sizeof(Parameters) + ... + 0), run),
        "starting a kernel");
}

}  // namespace dtrain::cuda
