#include "nn/layers/common.h"
#include "nn/layers/pooling.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct GlobalPoolingOptions {
  bool keepdims = false;

  static const Schema<GlobalPoolingOptions>& schema() {
    static const auto schema =
        Schema<GlobalPoolingOptions>("The largest, or the mean, of a whole image, each channel by itself.")
            .optional("keepdims", &GlobalPoolingOptions::keepdims, "the output is an image of 1x1");
    return schema;
  }
};

class GlobalPooling2D : public LayerWith<GlobalPoolingOptions> {
 public:
  GlobalPooling2D(PoolingSpec::Kind kind, const GlobalPoolingOptions& options)
      : LayerWith(options), kind_(kind) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input) return {};
    const int64_t channels = input->shape[2];
    return {TensorSpec{{}, options_.keepdims ? Shape{1, 1, channels} : Shape{channels}, DType::float32}};
  }

  /// Images of one pixel are the same in every layout, so the output is plain for every input layout.
  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const Shape& image = request.inputs[0].shape;
    const Size2 all{image[0], image[1]};
    return std::make_unique<PreparedPooling>(request, kind_, Window{all, all, {}}, Layout::plain);
  }

 private:
  PoolingSpec::Kind kind_;
};

}  // namespace

void add_global_pooling2d(Registry<Layer>& table) {
  const auto of = [](PoolingSpec::Kind kind) {
    return [kind](const GlobalPoolingOptions& options, const ConfigNode&) -> std::shared_ptr<const Layer> {
      return std::make_shared<const GlobalPooling2D>(kind, options);
    };
  };
  table.add_with("global_max_pooling2d", GlobalPoolingOptions::schema(), of(PoolingSpec::Kind::max));
  table.add_with("global_average_pooling2d", GlobalPoolingOptions::schema(), of(PoolingSpec::Kind::average));
}

}  // namespace dtrain
