// Checks whether a GPU can run the kernels that this program was compiled with.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::cuda {

/// Returns "gpu:1 (Tesla T4)", or "gpu:1" if CUDA does not report the name. Creates no CUDA context.
std::string describe_gpu(int index);

/// Returns the reason why a GPU of this compute capability (75 is 7.5) cannot run kernels compiled for
/// `architectures`, a comma-separated CMAKE_CUDA_ARCHITECTURES list ("80-real,90-real,90-virtual"). `driver`
/// and `toolkit` are CUDA versions (13020 is 13.2): a driver compiles PTX ("virtual") of the same or an older
/// version. Returns "" if the GPU can run them, or if the list is not numeric ("native").
std::string kernel_obstacle(std::string_view architectures, int capability, int driver, int toolkit);

/// Initializes the runtime on the current GPU, number `index`, and loads a kernel there. Throws UserError
/// with the GPU's name and the reason if the GPU cannot run this program's kernels.
void require_kernels(int index);

}  // namespace dtrain::cuda
