#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/layers/common.h"
#include "nn/layers/reshaping/strided.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

constexpr size_t kMostAxes = 5;

/// Returns whether `dims` is a permutation of the numbers from 1 to its size.
bool is_permutation(const std::vector<int64_t>& dims) {
  std::vector<int64_t> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i) + 1) return false;
  return !dims.empty() && dims.size() <= kMostAxes;
}

struct PermuteOptions {
  std::vector<int64_t> dims;

  static const Schema<PermuteOptions>& schema() {
    static const auto schema =
        Schema<PermuteOptions>("Permutes the axes of each sample.")
            .example("{dims: [3, 1, 2]}")
            .required("dims", &PermuteOptions::dims,
                      "list with one number for each axis of the output: the axis of the input, counted from "
                      "1, that is moved there. For example, [2, 1] swaps two axes",
                      {"a list that has each number from 1 to the number of axes (at most 5) exactly once",
                       is_permutation});
    return schema;
  }
};

class Permute : public LayerWith<PermuteOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input(inputs, report_error);
    if (!input) return {};
    if (input->shape.rank() != options_.dims.size()) {
      report_error(fmt::format(
          "dims must list each axis of the input once, but dims is [{}] and '{}' has the shape {}",
          fmt::join(options_.dims, ", "), input->name, input->shape.str()));
      return {};
    }
    std::vector<int64_t> shape;
    for (const int64_t dim : options_.dims) shape.push_back(input->shape[static_cast<size_t>(dim - 1)]);
    return {TensorSpec{{}, Shape(shape), DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    std::vector<int64_t> inverse(options_.dims.size());
    for (size_t i = 0; i < inverse.size(); ++i)
      inverse[static_cast<size_t>(options_.dims[i] - 1)] = static_cast<int64_t>(i) + 1;
    return std::make_unique<PreparedStridedSum>(
        request, permuted(request.batch, request.inputs[0].shape, options_.dims),
        permuted(request.batch, request.output().shape, inverse));
  }

 private:
  /// Returns the strided copy that permutes the axes of a batch as `dims` specifies. `shape` is the shape
  /// of one sample.
  static StridedSum permuted(int64_t batch, const Shape& shape, const std::vector<int64_t>& dims) {
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t axis = dims.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * shape[axis + 1];
    StridedSum copy;
    const size_t first = 6 - dims.size();
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto axis = static_cast<size_t>(dims[i] - 1);
      copy.extents[first + i] = shape[axis];
      copy.strides[first + i] = strides[axis];
    }
    copy.extents[first - 1] = batch;
    copy.strides[first - 1] = shape.elements();
    return copy;
  }
};

}  // namespace

void add_permute(Registry<Layer>& table) {
  table.add<Permute>("permute", PermuteOptions::schema());
}

}  // namespace dtrain
