#include "nn/layers/common.h"
#include "nn/layers/pooling.h"
#include "nn/layers/table.h"
#include "nn/layers/window.h"

namespace dtrain {
namespace {

struct PoolingOptions {
  Size2 pool_size{2, 2};
  std::optional<Size2> strides;
  Border padding = Border::valid;

  static const Schema<PoolingOptions>& schema() {
    using O = PoolingOptions;
    static const auto schema =
        Schema<O>("The largest, or the mean, of every window of an image, each channel by itself.")
            .example("{pool_size: 2, strides: 2}")
            .optional("pool_size", &O::pool_size, "extent of the window")
            .optional("strides", &O::strides, "steps of the window over the image; pool_size if null")
            .optional("padding", &O::padding,
                      "'same' lets windows stand over the border, to ceil(extent / stride) of them");
    return schema;
  }
};

class Pooling2D : public LayerWith<PoolingOptions> {
 public:
  Pooling2D(PoolingSpec::Kind kind, const PoolingOptions& options) : LayerWith(options), kind_(kind) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input || !fits(window(), "pool_size", *input, report_error)) return {};
    return {TensorSpec{{}, window_positions(window(), input->shape, input->shape[2]), DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedPooling>(request, kind_, window(), request.input_layouts[0]);
  }

 private:
  Window window() const {
    return {options_.pool_size, options_.strides.value_or(options_.pool_size), {}, options_.padding};
  }

  PoolingSpec::Kind kind_;
};

}  // namespace

void add_pooling2d(Registry<Layer>& table) {
  const auto of = [](PoolingSpec::Kind kind) {
    return [kind](const PoolingOptions& options, const ConfigNode&) -> std::shared_ptr<const Layer> {
      return std::make_shared<const Pooling2D>(kind, options);
    };
  };
  table.add_with("max_pooling2d", PoolingOptions::schema(), of(PoolingSpec::Kind::max));
  table.add_with("average_pooling2d", PoolingOptions::schema(), of(PoolingSpec::Kind::average));
}

}  // namespace dtrain
