#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/reshaping/padding.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct CroppingOptions {
  Padding2 cropping;

  static const Schema<CroppingOptions>& schema() {
    static const auto schema =
        Schema<CroppingOptions>("Crops images: removes pixels at the edges.")
            .example("{cropping: [1, 2]}")
            .optional("cropping", &CroppingOptions::cropping,
                      fmt::format("number of pixels that are removed on each side: {}", kPadding2Forms))
            .positional("cropping");
    return schema;
  }
};

class Cropping2D : public LayerWith<CroppingOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input) return {};
    const auto& [top, bottom, left, right] = options_.cropping;
    const int64_t height = input->shape[0] - top - bottom, width = input->shape[1] - left - right;
    if (height < 1 || width < 1) {
      report_error(fmt::format("cropping [[{}, {}], [{}, {}]] removes the whole input of shape {}", top,
                               bottom, left, right, input->shape.str()));
      return {};
    }
    return {TensorSpec{{}, {height, width, input->shape[2]}, DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedPadding>(request, options_.cropping, PreparedPadding::Kind::crop);
  }
};

}  // namespace

void add_cropping2d(Registry<Layer>& table) {
  table.add<Cropping2D>("cropping2d", CroppingOptions::schema());
}

}  // namespace dtrain
