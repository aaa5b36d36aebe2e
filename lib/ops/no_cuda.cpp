// Replaces the folder cuda/ in builds without the CUDA toolkit.
#include "base/error.h"
#include "ops/ops.h"

namespace dtrain {

std::unique_ptr<Ops> make_cuda_ops(Context&, const GpuMath&) {
  throw UserError("a GPU cannot be used, because this program was built without CUDA");
}

}  // namespace dtrain
