#include "nn/layers/common.h"
#include "nn/layers/reshaping/strided.h"
#include "nn/layers/resize.h"
#include "nn/layers/table.h"
#include "nn/layers/window.h"

namespace dtrain {
namespace {

struct UpSamplingOptions {
  Size2 size{2, 2};
  ResizeInterpolation interpolation = ResizeInterpolation::nearest;

  static const Schema<UpSamplingOptions>& schema() {
    using O = UpSamplingOptions;
    static const auto schema =
        Schema<O>("Enlarges images by integer factors. Pixels are repeated or interpolated.")
            .example("{size: 2}")
            .optional("size", &O::size, "factors by which the height and the width are multiplied")
            .optional("interpolation", &O::interpolation,
                      "Method of interpolation. `nearest` repeats each pixel. `bilinear` interpolates "
                      "between the centers of the pixels.")
            .positional("size");
    return schema;
  }
};

class UpSampling2D : public LayerWith<UpSamplingOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input) return {};
    const auto [rows, columns] = options_.size;
    constexpr int64_t kMost = int64_t{1} << 30;
    if (rows > kMost / input->shape[0] || columns > kMost / input->shape[1]) {
      report_error("the output would have more than 2^30 rows or columns");
      return {};
    }
    return {
        TensorSpec{{}, {input->shape[0] * rows, input->shape[1] * columns, input->shape[2]}, DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    if (options_.interpolation == ResizeInterpolation::bilinear)
      return std::make_unique<PreparedResize>(request, options_.interpolation);
    const Shape& image = request.inputs[0].shape;
    const auto [down, across] = options_.size;
    const auto [forward, backward] = repeated(request.batch * image[0], image[1], image[2], down, across);
    return std::make_unique<PreparedStridedSum>(request, forward, backward);
  }
};

}  // namespace

void add_upsampling2d(Registry<Layer>& table) {
  table.add<UpSampling2D>("upsampling2d", UpSamplingOptions::schema());
}

}  // namespace dtrain
