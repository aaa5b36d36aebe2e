// Code shared by the pooling layers.
#pragma once

#include <memory>
#include <string_view>

#include "nn/layer.h"
#include "nn/layers/window.h"

namespace dtrain {

/// Returns the word for the pooled value in the descriptions of layers: "maximum" or "mean".
constexpr std::string_view pooled_value(PoolingSpec::Kind kind) {
  return kind == PoolingSpec::Kind::max ? "maximum" : "mean";
}

/// Pools images or volumes. `src` is their shape, and their layout is the layout of the input.
/// `output_layout` is the layout that the layer reports for its output.
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
