// What the pooling layers share.
#pragma once

#include <memory>

#include "nn/layer.h"
#include "nn/layers/window.h"

namespace dtrain {

/// Pools images that lie as they come; `output_layout` is what the result is called.
class PoolingKernel : public Kernel {
 public:
  PoolingKernel(const LayerRequest& request, PoolingSpec::Kind kind, const Window& window,
                Layout output_layout);
  void forward(const Pass& pass) override;
  void backward(const Pass& pass) override;

 private:
  std::unique_ptr<Pooling> pooling_;
};

}  // namespace dtrain
