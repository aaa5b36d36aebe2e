// Checks whether a GPU can run the kernels that this program was compiled with.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::cuda {

/// Returns "gpu:1 (Tesla T4)", or "gpu:1" if CUDA does not report the GPU's name. Creates no CUDA context.
std::string describe_gpu(int index);

/// Returns the reason why a GPU cannot run kernels that were compiled for `architectures`, or "" if it can
/// run them. `architectures` is a comma-separated list as in CMAKE_CUDA_ARCHITECTURES
/// ("80-real,90-real,90-virtual"). If the list is not numeric ("native"), returns "". `capability` is the
/// compute capability of the GPU (75 is 7.5). `driver` and `toolkit` are CUDA versions (13020 is 13.2). They
/// matter for PTX ("virtual"), because a driver can compile only PTX of the same or an older version.
std::string kernel_obstacle(std::string_view architectures, int capability, int driver, int toolkit);

/// Initializes the CUDA runtime on the current GPU, which must be GPU `index`, and loads a kernel. Throws
/// UserError with the GPU's name and the reason if the GPU cannot run this program's kernels.
void require_kernels(int index);

}  // namespace dtrain::cuda
