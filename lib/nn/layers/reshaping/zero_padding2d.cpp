#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/reshaping/padding.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct PaddingOptions {
  Padding2 padding{1, 1, 1, 1};

  static const Schema<PaddingOptions>& schema() {
    static const auto schema =
        Schema<PaddingOptions>("Pads images with zeros.")
            .example("{padding: [1, 2]}")
            .optional("padding", &PaddingOptions::padding,
                      fmt::format("number of pixels that are added on each side: {}", kPadding2Forms))
            .positional("padding");
    return schema;
  }
};

class ZeroPadding2D : public LayerWith<PaddingOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input) return {};
    const auto& [top, bottom, left, right] = options_.padding;
    const Shape& shape = input->shape;
    return {TensorSpec{{}, {shape[0] + top + bottom, shape[1] + left + right, shape[2]}, DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedPadding>(request, options_.padding, PreparedPadding::Kind::pad);
  }
};

}  // namespace

void add_zero_padding2d(Registry<Layer>& table) {
  table.add<ZeroPadding2D>("zero_padding2d", PaddingOptions::schema());
}

}  // namespace dtrain
