// Whether a GPU can run the kernels that this program was compiled with.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::cuda {

/// "gpu:1 (Tesla T4)"; "gpu:1" where CUDA does not tell the name. Makes no context.
std::string describe_gpu(int index);

/// Why a GPU of this compute capability (75 is 7.5) cannot run kernels compiled for `architectures`, the
/// elements of CMAKE_CUDA_ARCHITECTURES with commas between them ("80-real,90-real,90-virtual"). `driver` and
/// `toolkit` are CUDA versions (13020 is 13.2): a driver compiles PTX ("virtual") of its own version or of
/// older ones. Empty if the GPU can run them, or if the list does not consist of numbers ("native").
std::string kernel_obstacle(std::string_view architectures, int capability, int driver, int toolkit);

/// Starts the runtime on the current GPU, number `index`, and looks for a kernel of this program there.
/// Throws UserError that names the GPU and says what it lacks, where it cannot run one.
void require_kernels(int index);

}  // namespace dtrain::cuda
