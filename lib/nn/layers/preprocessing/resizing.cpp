#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/resize.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct ResizingOptions {
  int64_t height = 0, width = 0;
  ResizeInterpolation interpolation = ResizeInterpolation::bilinear;

  static const Schema<ResizingOptions>& schema() {
    using O = ResizingOptions;
    static const auto schema =
        Schema<O>("Resizes images to the given height and width. The aspect ratio is not kept.")
            .example("{height: 32, width: 48}")
            .required("height", &O::height, "height of the output, in pixels", extent())
            .required("width", &O::width, "width of the output, in pixels", extent())
            .optional("interpolation", &O::interpolation,
                      "Method of interpolation. `bilinear` interpolates between the centers of the pixels, "
                      "without antialiasing when images become smaller. `nearest` copies the nearest pixel.");
    return schema;
  }
};

class Resizing : public LayerWith<ResizingOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input) return {};
    if (!math::ResizedAxis::fits(input->shape[0], options_.height) ||
        !math::ResizedAxis::fits(input->shape[1], options_.width)) {
      report_error(fmt::format(
          "'{}' of shape {} cannot be resized to {} x {}, because images of these sizes are too large",
          input->name, input->shape.str(), options_.height, options_.width));
      return {};
    }
    return {TensorSpec{{}, {options_.height, options_.width, input->shape[2]}, DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedResize>(request, options_.interpolation);
  }
};

}  // namespace

void add_resizing(Registry<Layer>& table) {
  table.add<Resizing>("resizing", ResizingOptions::schema());
}

}  // namespace dtrain
