#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/layers/common.h"
#include "nn/layers/reshaping/prepared_view.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct ReshapeOptions {
  std::vector<int64_t> target_shape;

  static const Schema<ReshapeOptions>& schema() {
    static const auto schema =
        Schema<ReshapeOptions>(
            "Changes the shape of each sample. The elements and their order do not change.")
            .example("{target_shape: [16, -1]}")
            .required("target_shape", &ReshapeOptions::target_shape,
                      "the new shape of a sample. One size may be -1; it is then computed from the number of "
                      "elements and the other sizes",
                      {"a list of sizes of at least 1, in which at most one size is -1",
                       [](const std::vector<int64_t>& shape) {
                         const auto good = [](int64_t n) { return n == -1 || (n >= 1 && n <= 1 << 30); };
                         return std::all_of(shape.begin(), shape.end(), good) &&
                                std::count(shape.begin(), shape.end(), -1) <= 1;
                       }});
    return schema;
  }
};

class Reshape : public LayerWith<ReshapeOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    if (!one_input(inputs, report_error)) return {};
    const std::vector<int64_t>& target = options_.target_shape;
    const int64_t elements = inputs[0].shape.elements();
    // Product of the known extents. To avoid overflow, the product stops growing once it exceeds `elements`.
    int64_t known = 1;
    for (const int64_t extent : target)
      if (extent > 0 && known <= elements) known *= extent;
    const auto open = std::find(target.begin(), target.end(), -1);
    const bool fits = known <= elements && (open == target.end() ? known == elements : elements % known == 0);
    if (!fits) {
      report_error(
          fmt::format("target_shape [{}] does not fit the input '{}' of shape {}, which has {} elements",
                      fmt::join(target, ", "), inputs[0].name, inputs[0].shape.str(), elements));
      return {};
    }
    std::vector<int64_t> shape = target;
    std::replace(shape.begin(), shape.end(), int64_t{-1}, elements / known);
    return {TensorSpec{{}, Shape(shape), inputs[0].dtype}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest&) const override {
    return std::make_unique<PreparedView>();
  }
};

}  // namespace

void add_reshape(Registry<Layer>& table) {
  table.add<Reshape>("reshape", ReshapeOptions::schema());
}

}  // namespace dtrain
