// Global pooling of images and volumes.
#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/pooling/pooling.h"
#include "nn/layers/space.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

template <class Size>
struct GlobalPoolingOptions {
  bool keepdims = false;

  static Schema<GlobalPoolingOptions> schema(PoolingSpec::Kind kind) {
    return Schema<GlobalPoolingOptions>(
               fmt::format("The {} of each channel of {}.", pooled_value(kind), Space<Size>::kOne))
        .optional("keepdims", &GlobalPoolingOptions::keepdims,
                  fmt::format("Whether to keep the reduced axes. If true, the output is {} of one {}. If "
                              "false, it is a vector.",
                              Space<Size>::kOne, Space<Size>::kElement));
  }
};

template <class Size>
class GlobalPooling : public LayerWith<GlobalPoolingOptions<Size>> {
 public:
  GlobalPooling(PoolingSpec::Kind kind, const GlobalPoolingOptions<Size>& options)
      : LayerWith<GlobalPoolingOptions<Size>>(options), kind_(kind) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = Space<Size>::kInput(inputs, report_error);
    if (!input) return {};
    const int64_t channels = input->shape.back();
    const Shape pixel(extents_with(Size(), {channels}));
    return {TensorSpec{{}, this->options_.keepdims ? pixel : Shape{channels}, DType::float32}};
  }

  /// The output is a single pixel, which is stored in the same way in every layout. Therefore the output's
  /// layout is always reported as plain.
  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const Size3 extents = extents_of(request.inputs[0].shape);
    // The planes of a volume are treated as one tall image.
    const Size2 all{extents.depth * extents.height, extents.width};
    return std::make_unique<PreparedPooling>(request, kind_, Window{all, all, {}},
                                             Shape(extents_with(all, {request.inputs[0].shape.back()})),
                                             Layout::plain);
  }

 private:
  PoolingSpec::Kind kind_;
};

template <class Size>
void add_global_poolings(Registry<Layer>& table, const std::string& axes) {
  using Options = GlobalPoolingOptions<Size>;
  const auto add = [&](const std::string& name, PoolingSpec::Kind kind) {
    table.add_with(name + axes, Options::schema(kind),
                   [kind](const Options& options, const ConfigNode&) -> std::shared_ptr<const Layer> {
                     return std::make_shared<const GlobalPooling<Size>>(kind, options);
                   });
  };
  add("global_max_pooling", PoolingSpec::Kind::max);
  add("global_average_pooling", PoolingSpec::Kind::average);
}

}  // namespace

void add_global_pooling2d(Registry<Layer>& table) {
  add_global_poolings<Size2>(table, "2d");
}

void add_global_pooling3d(Registry<Layer>& table) {
  add_global_poolings<Size3>(table, "3d");
}

}  // namespace dtrain
