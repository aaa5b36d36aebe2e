#include "ops/cuda/cuda_ops.h"

#include "base/error.h"

namespace dtrain::cuda {

std::unique_ptr<Reorder> CudaOps::reorder(const Shape&, Layout, Layout) {
  throw Error("images on a GPU have only one memory layout, so they cannot be converted to another layout");
}

}  // namespace dtrain::cuda

namespace dtrain {

std::unique_ptr<Ops> make_cuda_ops(Context& context, const GpuMath& math) {
  return std::make_unique<cuda::CudaOps>(dynamic_cast<cuda::CudaContext&>(context), math);
}

}  // namespace dtrain
