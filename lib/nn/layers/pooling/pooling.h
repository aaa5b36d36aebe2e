// Code shared by the pooling layers.
#pragma once

#include <memory>
#include <string_view>

#include "nn/layer.h"
#include "nn/layers/window.h"

namespace dtrain {

/// Returns the name of the pooled value, "maximum" or "mean", for the descriptions of layers.
constexpr std::string_view pooled_value(PoolingSpec::Kind kind) {
  return kind == PoolingSpec::Kind::max ? "maximum" : "mean";
}

/// Pools images or volumes of shape `src`, in the layout of the input. `output_layout` is the layout reported
/// for the output.
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
