// Pooling of images and volumes.
#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/pooling/pooling.h"
#include "nn/layers/space.h"
#include "nn/layers/table.h"
#include "nn/layers/window.h"

namespace dtrain {
namespace {

/// The default pool_size, which is 2 along each axis.
template <class Size>
constexpr Size kPairs{2, 2, 2};
template <>
constexpr Size2 kPairs<Size2>{2, 2};

template <class Size>
struct PoolingOptions {
  Size pool_size = kPairs<Size>;
  std::optional<Size> strides;
  Border padding = Border::valid;

  static Schema<PoolingOptions> schema(PoolingSpec::Kind kind) {
    using O = PoolingOptions;
    return Schema<O>(fmt::format("The {} of each window of {}, separately for each channel.",
                                 pooled_value(kind), Space<Size>::kOne))
        .example("{pool_size: 2, strides: 2}")
        .optional("pool_size", &O::pool_size, "size of the window")
        .optional("strides", &O::strides,
                  "Stride of the window: the distance between neighboring windows. Default: pool_size.")
        .optional("padding", &O::padding,
                  fmt::format("With `valid`, all windows are inside the {}. With `same`, there are ceil(size "
                              "/ stride) windows, and windows at the border are cut off.",
                              Space<Size>::kName));
  }
};

template <class Size>
class WindowPooling : public LayerWith<PoolingOptions<Size>> {
 public:
  WindowPooling(PoolingSpec::Kind kind, const PoolingOptions<Size>& options)
      : LayerWith<PoolingOptions<Size>>(options), kind_(kind) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = Space<Size>::kInput(inputs, report_error);
    if (!input || !fits(window(), "pool_size", *input, report_error)) return {};
    return {TensorSpec{{}, window_positions(window(), input->shape, input->shape.back()), DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedPooling>(request, kind_, window(), request.inputs[0].shape,
                                             request.input_layouts[0]);
  }

 private:
  using LayerWith<PoolingOptions<Size>>::options_;

  Window window() const {
    return {options_.pool_size, options_.strides.value_or(options_.pool_size), {}, options_.padding};
  }

  PoolingSpec::Kind kind_;
};

template <class Size>
void add_poolings(Registry<Layer>& table, const std::string& axes) {
  using Options = PoolingOptions<Size>;
  const auto add = [&](const std::string& name, PoolingSpec::Kind kind) {
    table.add_with(name + axes, Options::schema(kind),
                   [kind](const Options& options, const ConfigNode&) -> std::shared_ptr<const Layer> {
                     return std::make_shared<const WindowPooling<Size>>(kind, options);
                   });
  };
  add("max_pooling", PoolingSpec::Kind::max);
  add("average_pooling", PoolingSpec::Kind::average);
}

}  // namespace

void add_pooling2d(Registry<Layer>& table) {
  add_poolings<Size2>(table, "2d");
}

void add_pooling3d(Registry<Layer>& table) {
  add_poolings<Size3>(table, "3d");
}

}  // namespace dtrain
