#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct ConcatenateOptions {
  int64_t axis = -1;

  static const Schema<ConcatenateOptions>& schema() {
    static const auto schema = Schema<ConcatenateOptions>("Concatenates its inputs along one axis.")
                                   .example("{inputs: [a, b], axis: -1}")
                                   .optional("axis", &ConcatenateOptions::axis,
                                             "Axis along which the inputs are concatenated. 1 is the first "
                                             "axis after the batch axis, and -1 is the last axis.");
    return schema;
  }
};

/// Copies each input into the output as a block of [rows, columns]. All axes before the concatenated axis
/// together form the rows. The concatenated axis and all axes after it together form the columns.
class PreparedConcatenate : public PreparedLayer {
 public:
  PreparedConcatenate(const LayerRequest& request, size_t axis) : ops_(request.ops) {
    int64_t after = 1;
    for (size_t i = axis + 1; i < request.output().shape.rank(); ++i) after *= request.output().shape[i];
    stride_ = request.output().shape[axis] * after;
    rows_ = batch_elements(request, request.output().shape) / stride_;
    for (const TensorSpec& input : request.inputs) columns_.push_back(input.shape[axis] * after);
  }

  void forward(const LayerArguments& args) override {
    auto* dst = static_cast<char*>(args.output());
    for (size_t i = 0; i < columns_.size(); ++i) {
      ops_.copy_block(dst, stride_, args.inputs[i], columns_[i], rows_, columns_[i]);
      dst += bytes(columns_[i]);
    }
  }

  void backward(const LayerArguments& args) override {
    const auto* src = static_cast<const char*>(args.diff_output());
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (args.diff_inputs[i])
        ops_.copy_block(args.diff_inputs[i], columns_[i], src, stride_, rows_, columns_[i]);
      src += bytes(columns_[i]);
    }
  }

 private:
  size_t bytes(int64_t elements) const {
    return static_cast<size_t>(elements) * bytes_of(ops_.compute_type());
  }

  Ops& ops_;
  int64_t rows_, stride_;
  std::vector<int64_t> columns_;
};

class Concatenate : public LayerWith<ConcatenateOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    if (!several_float_inputs(inputs, report_error)) return {};
    const Shape& first = inputs[0].shape;
    const auto rank = static_cast<int64_t>(first.rank());
    if (rank == 0) {
      report_error(
          fmt::format("expected inputs with at least one axis, but '{}' is a scalar", inputs[0].name));
      return {};
    }
    if (options_.axis == 0 || options_.axis < -rank || options_.axis > rank) {
      report_error(fmt::format("axis {} does not exist in '{}' of shape {}; expected 1 to {} or -{} to -1",
                               options_.axis, inputs[0].name, first.str(), rank, rank));
      return {};
    }
    TensorSpec output{{}, first, DType::float32};
    const size_t axis = axis_in(first);
    for (const TensorSpec& input : inputs.subspan(1)) {
      if (!same_but(axis, first, input.shape)) {
        report_error(
            fmt::format("expected inputs that differ only along axis {}, but '{}' has the shape {} and '{}' "
                        "has the shape {}",
                        options_.axis, inputs[0].name, first.str(), input.name, input.shape.str()));
        return {};
      }
      output.shape[axis] += input.shape[axis];
    }
    return {output};
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedConcatenate>(request, axis_in(request.output().shape));
  }

 private:
  /// Returns the index of the concatenated axis among the axes of a sample.
  size_t axis_in(const Shape& shape) const {
    return options_.axis > 0 ? static_cast<size_t>(options_.axis - 1)
                             : shape.rank() - static_cast<size_t>(-options_.axis);
  }

  static bool same_but(size_t axis, Shape a, const Shape& b) {
    if (a.rank() != b.rank()) return false;
    a[axis] = b[axis];
    return a == b;
  }
};

}  // namespace

void add_concatenate(Registry<Layer>& table) {
  table.add<Concatenate>("concatenate", ConcatenateOptions::schema());
}

}  // namespace dtrain
