// What the pooling layers share.
#pragma once

#include <memory>

#include "nn/layer.h"
#include "nn/layers/window.h"

namespace dtrain {

/// Pools images of `src`, or volumes, in the layout in which they come; `output_layout` is the one that the
/// plan is told of the result.
class PreparedPooling : public PreparedLayer {
 public:
  PreparedPooling(const LayerRequest& request, PoolingSpec::Kind kind, const Window& window, const Shape& src,
                  Layout output_layout);
  void forward(const LayerArguments& args) override;
  void backward(const LayerArguments& args) override;

 private:
  std::unique_ptr<Pooling> pooling_;
};

}  // namespace dtrain
