#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/axes.h"
#include "nn/layers/array_offsets.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "ops/merging.h"

namespace dtrain {
namespace {

struct DotOptions {
  Axes axes;
  bool normalize = false;

  static const Schema<DotOptions>& schema() {
    using O = DotOptions;
    static const auto schema =
        Schema<O>(
            "The dot product of two inputs along one axis of each input. For each sample, this is a product "
            "of two matrices.")
            .example("{inputs: [a, b], axes: -1}")
            .required(
                "axes", &O::axes,
                "Axis along which the products are summed: one axis for both inputs, or a list with the axis "
                "of each input. 1 is the first axis after the batch axis, and -1 is the last axis.",
                {"one number, or a list of two numbers",
                 [](const Axes& axes) { return axes.axes.size() == 1 || axes.axes.size() == 2; }})
            .optional("normalize", &O::normalize,
                      "Whether each input is first divided by its Euclidean norm along its axis. The outputs "
                      "are then the cosines of angles.");
    return schema;
  }
};

/// The axis of one input that the product sums over. `before` is the product of the extents before this
/// axis, and `after` is the product of the extents after it.
struct DotAxis {
  int64_t before = 1, extent = 1, after = 1;
  int64_t rows() const { return before * after; }
};

DotAxis axis_of(const Shape& shape, size_t axis) {
  DotAxis found{1, shape[axis], 1};
  for (size_t i = 0; i < shape.rank(); ++i)
    (i < axis ? found.before : found.after) *= i == axis ? 1 : shape[i];
  return found;
}

/// One input as a matrix of shape [batch * rows, extent]. To get this matrix, the summed axis is moved to the
/// end, and the rows are normalized if the user requested it. Backward computes the matrix again, so that the
/// matrix does not need to be saved between forward and backward.
class DotRows {
 public:
  /// Reserves arrays for the matrix and its gradient in scratch memory.
  DotRows(const LayerRequest& request, const DotAxis& axis, bool normalizes, ArrayOffsets& scratch)
      : ops_(request.ops),
        moves_(axis.after > 1),
        normalizes_(normalizes),
        rows_(request.batch * axis.rows()),
        columns_(axis.extent) {
    const auto [before, extent, after] = axis;
    to_rows_ = {.extents = {1, 1, request.batch, before, after, extent},
                .strides = {0, 0, before * extent * after, extent * after, 1, after}};
    from_rows_ = {.extents = {1, 1, request.batch, before, extent, after},
                  .strides = {0, 0, before * extent * after, extent * after, 1, extent}};
    const size_t element = bytes_of(ops_.compute_type());
    const int64_t elements = rows_ * columns_;
    if (moves_) moved_ = scratch.add(elements, element);
    if (normalizes_) {
      normal_ = scratch.add(elements, element);
      inverse_ = scratch.add(rows_, sizeof(float));
    }
    if (request.training && moves_) gradient_ = scratch.add(elements, element);
  }

  /// Returns the matrix of an input. If the input already has the form of the matrix, returns the input
  /// itself. Otherwise computes the matrix in scratch memory.
  const void* compute(const void* input, void* scratch) const {
    if (moves_) ops_.strided_sum(to_rows_, input, array_at(scratch, moved_));
    const void* const rows = moved(input, scratch);
    if (!normalizes_) return rows;
    ops_.rms_normalization_forward({.src = rows,
                                    .scale = nullptr,
                                    .norm = kNorm,
                                    .dst = array_at(scratch, normal_),
                                    .inverse = inverse(scratch),
                                    .rows = rows_,
                                    .columns = columns_});
    return array_at(scratch, normal_);
  }

  /// Returns the memory for the gradient of the matrix.
  void* gradient(void* diff_input, void* scratch) const {
    return moves_ ? array_at(scratch, gradient_) : diff_input;
  }

  /// Computes the gradient of the input from the gradient of the matrix. compute() must have been called
  /// before.
  void finish(const void* input, void* diff_input, void* scratch) const {
    void* const diff = gradient(diff_input, scratch);
    if (normalizes_)
      ops_.rms_normalization_backward({.src = moved(input, scratch),
                                       .scale = nullptr,
                                       .norm = kNorm,
                                       .inverse = inverse(scratch),
                                       .diff_dst = diff,
                                       .diff_src = diff,
                                       .diff_scale = nullptr,
                                       .rows = rows_,
                                       .columns = columns_});
    if (moves_) ops_.strided_sum(from_rows_, diff, diff_input);
  }

 private:
  static constexpr math::InverseNorm kNorm{.limit = 1e7f};  // 1 / 1e-7, where 1e-7 is Keras's epsilon

  const void* moved(const void* input, void* scratch) const {
    return moves_ ? array_at(scratch, moved_) : input;
  }
  float* inverse(void* scratch) const { return static_cast<float*>(array_at(scratch, inverse_)); }

  Ops& ops_;
  bool moves_, normalizes_;
  int64_t rows_, columns_;
  StridedSum to_rows_, from_rows_;
  size_t moved_ = 0, normal_ = 0, inverse_ = 0, gradient_ = 0;  // offsets in scratch memory
};

/// A prepared dot layer. For each sample it computes the matrix product C = A B^T. A is the matrix (DotRows)
/// of the first input, and B is the matrix of the second input. The gradients are dA = dC B and dB = dC^T A.
class PreparedDot : public PreparedLayer {
 public:
  PreparedDot(const LayerRequest& request, const std::array<DotAxis, 2>& axes, bool normalizes)
      : inputs_{DotRows(request, axes[0], normalizes, scratch_),
                DotRows(request, axes[1], normalizes, scratch_)} {
    const int64_t m = axes[0].rows(), n = axes[1].rows(), k = axes[0].extent;
    const auto product = [&](MatmulSpec spec) {
      spec.batch = request.batch;
      return request.ops.matmul(spec);
    };
    forward_ = product({.m = m, .n = n, .k = k, .transpose_b = true, .activation = {}});
    size_t bytes = forward_->scratch_bytes();
    if (request.training) {
      requirements_.backward_reads_inputs = true;
      backward_[0] = product({.m = m, .n = k, .k = n, .activation = {}});
      backward_[1] = product({.m = n, .n = k, .k = m, .transpose_a = true, .activation = {}});
      for (const auto& one : backward_) bytes = std::max(bytes, one->scratch_bytes());
    }
    work_ = scratch_.add(bytes);
    requirements_.scratch_bytes = scratch_.bytes();
  }

  void forward(const LayerArguments& args) override {
    const void* const a = inputs_[0].compute(args.inputs[0], args.scratch);
    const void* const b = inputs_[1].compute(args.inputs[1], args.scratch);
    forward_->run(a, b, nullptr, args.output(), array_at(args.scratch, work_));
  }

  void backward(const LayerArguments& args) override {
    std::array<const void*, 2> rows{};
    for (size_t i = 0; i < 2; ++i) rows[i] = inputs_[i].compute(args.inputs[i], args.scratch);
    for (size_t i = 0; i < 2; ++i) {
      void* const diff = args.diff_inputs[i];
      if (!diff) continue;
      backward_[i]->run(args.diff_output(), rows[1 - i], nullptr, inputs_[i].gradient(diff, args.scratch),
                        array_at(args.scratch, work_));
      inputs_[i].finish(args.inputs[i], diff, args.scratch);
    }
  }

 private:
  ArrayOffsets scratch_;
  std::array<DotRows, 2> inputs_;
  std::unique_ptr<Matmul> forward_;
  std::array<std::unique_ptr<Matmul>, 2> backward_;  // null in inference
  size_t work_ = 0;                                  // offset of the scratch memory of the matrix products
};

class Dot : public LayerWith<DotOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    if (!several_float_inputs(inputs, report_error)) return {};
    if (inputs.size() != 2) {
      report_error(fmt::format("expected 2 inputs, found {}", inputs.size()));
      return {};
    }
    std::vector<int64_t> shape;
    std::array<int64_t, 2> extents{};
    for (size_t i = 0; i < 2; ++i) {
      const Shape& own = inputs[i].shape;
      const std::optional<size_t> axis = axis_in(i, own);
      if (own.rank() == 0) {
        report_error(
            fmt::format("expected inputs with at least one axis, but '{}' is a scalar", inputs[i].name));
        return {};
      }
      if (!axis) {
        report_error(
            fmt::format("axis {0} does not exist in '{1}' of shape {2}; expected 1 to {3} or -{3} to -1",
                        written_axis(i), inputs[i].name, own.str(), own.rank()));
        return {};
      }
      extents[i] = own[*axis];
      for (size_t j = 0; j < own.rank(); ++j)
        if (j != *axis) shape.push_back(own[j]);
    }
    if (extents[0] != extents[1]) {
      report_error(
          fmt::format("the axes must have the same size, but the size is {} in '{}' of shape {} and {} in "
                      "'{}' of shape {}",
                      extents[0], inputs[0].name, inputs[0].shape.str(), extents[1], inputs[1].name,
                      inputs[1].shape.str()));
      return {};
    }
    if (shape.empty()) shape.push_back(1);
    return {TensorSpec{{}, Shape(std::move(shape)), DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    std::array<DotAxis, 2> axes;
    for (size_t i = 0; i < 2; ++i) {
      const Shape& shape = request.inputs[i].shape;
      axes[i] = axis_of(shape, *axis_in(i, shape));
    }
    return std::make_unique<PreparedDot>(request, axes, options_.normalize);
  }

 private:
  int64_t written_axis(size_t input) const {
    return options_.axes.axes.size() == 1 ? options_.axes.axes[0] : options_.axes.axes[input];
  }

  /// Returns the index of the summed axis in the shape of an input. The shape does not include the batch
  /// axis. Returns nullopt if the input has no such axis.
  std::optional<size_t> axis_in(size_t input, const Shape& shape) const {
    const auto rank = static_cast<int64_t>(shape.rank());
    const int64_t written = written_axis(input), axis = written < 0 ? written + rank : written - 1;
    return axis >= 0 && axis < rank ? std::optional(static_cast<size_t>(axis)) : std::nullopt;
  }
};

}  // namespace

void add_dot(Registry<Layer>& table) {
  table.add<Dot>("dot", DotOptions::schema());
}

}  // namespace dtrain
