#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/reshaping/strided.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct RepeatVectorOptions {
  int64_t n = 1;

  static const Schema<RepeatVectorOptions>& schema() {
    static const auto schema =
        Schema<RepeatVectorOptions>(
            "Repeats each sample n times. An input of shape [features] gives an output of shape [n, "
            "features].")
            .example("{n: 3}")
            .required("n", &RepeatVectorOptions::n, "the number of repetitions", extent());
    return schema;
  }
};

class RepeatVector : public LayerWith<RepeatVectorOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input(inputs, report_error);
    if (!input) return {};
    if (input->shape.rank() != 1) {
      report_error(fmt::format("expected an input with one axis, but '{}' has the shape {}", input->name,
                               input->shape.str()));
      return {};
    }
    return {TensorSpec{{}, {options_.n, input->shape[0]}, DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const int64_t columns = request.inputs[0].shape[0], n = options_.n, batch = request.batch;
    return std::make_unique<PreparedStridedSum>(
        request, StridedSum{.extents = {1, 1, 1, batch, n, columns}, .strides = {0, 0, 0, columns, 0, 1}},
        StridedSum{.extents = {1, 1, 1, 1, batch, columns},
                   .strides = {0, 0, 0, 0, n * columns, 1},
                   .sum_extents = {1, n},
                   .sum_strides = {0, columns}});
  }
};

}  // namespace

void add_repeat_vector(Registry<Layer>& table) {
  table.add<RepeatVector>("repeat_vector", RepeatVectorOptions::schema());
}

}  // namespace dtrain
