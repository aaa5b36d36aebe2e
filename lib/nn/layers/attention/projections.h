// Projections of one input by several kernels, computed as one matrix product.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "nn/layers/array_offsets.h"
#include "nn/layers/common.h"

namespace dtrain {

/// Computes y = x kernel + bias, where `kernel` consists of several kernels side by side. y has the shape
/// [rows, sum of the widths]. The parameters of the kernels remain separate arrays. If there is more than one
/// kernel, each call copies the parameters into one array.
class Projections {
 public:
  struct Part {
    size_t kernel;  ///< index of the kernel, [inputs, width], among the layer's parameters
    int64_t width;
  };

  struct Extent {
    int64_t rows, inputs;
  };

  /// If `use_bias` is true, the bias of a kernel is the parameter after that kernel. Reserves temporary
  /// arrays in `scratch`.
  Projections(const LayerRequest& request, const Extent& extent, std::vector<Part> parts, bool use_bias,
              bool needs_diff_x, ArrayOffsets& scratch)
      : ops_(request.ops),
        parts_(std::move(parts)),
        use_bias_(use_bias),
        inputs_(extent.inputs),
        rows_(extent.rows) {
    for (const Part& part : parts_) width_ += part.width;
    const size_t element = bytes_of(ops_.compute_type());
    if (several()) {
      kernel_ = scratch.add(inputs_ * width_, element);
      if (use_bias) bias_ = scratch.add(width_, element);
    }
    forward_ = ops_.matmul({.m = rows_, .n = width_, .k = inputs_, .bias = use_bias, .activation = {}});
    size_t product = forward_->scratch_bytes();
    if (request.training && needs_diff_x) {
      by_input_ = ops_.matmul({.m = rows_, .n = inputs_, .k = width_, .transpose_b = true, .activation = {}});
      product = std::max(product, by_input_->scratch_bytes());
    }
    if (trains_parameters(request)) {
      by_kernel_ = ops_.matmul({.m = inputs_,
                                .n = width_,
                                .k = rows_,
                                .transpose_a = true,
                                .float32_result = true,
                                .activation = {}});
      product = std::max(product, by_kernel_->scratch_bytes());
      if (several()) {
        diff_kernel_ = scratch.add(inputs_ * width_, sizeof(float));
        if (use_bias) diff_bias_ = scratch.add(width_, sizeof(float));
      }
    }
    product_ = scratch.add(product);
  }

  int64_t width() const { return width_; }
  int64_t elements() const { return rows_ * width_; }  ///< number of elements of y

  /// Reads x, which has the shape [rows, inputs], and writes y.
  void forward(const LayerArguments& args, const void* x, void* y) {
    const void* kernel = args.weights[parts_[0].kernel];
    const void* bias = use_bias_ ? args.weights[parts_[0].kernel + 1] : nullptr;
    if (several()) {
      kernel = gather_kernels(args);
      if (use_bias_) bias = gather_biases(args);
    }
    forward_->run(x, kernel, bias, y, at(args, product_));
  }

  /// Writes the gradients of the parameters if they are trained. Writes the gradient of x if diff_x is not
  /// null.
  void backward(const LayerArguments& args, const void* x, const void* diff_y, void* diff_x) {
    if (by_kernel_) write_parameter_gradients(args, x, diff_y);
    if (diff_x)
      by_input_->run(diff_y, several() ? gather_kernels(args) : args.weights[parts_[0].kernel], nullptr,
                     diff_x, at(args, product_));
  }

 private:
  bool several() const { return parts_.size() > 1; }
  static void* at(const LayerArguments& args, size_t offset) { return array_at(args.scratch, offset); }

  const void* gather_kernels(const LayerArguments& args) {
    auto* const all = static_cast<std::byte*>(at(args, kernel_));
    int64_t column = 0;
    for (const Part& part : parts_) {
      ops_.copy_block(all + static_cast<size_t>(column) * bytes_of(ops_.compute_type()), width_,
                      args.weights[part.kernel], part.width, inputs_, part.width);
      column += part.width;
    }
    return all;
  }
  const void* gather_biases(const LayerArguments& args) {
    auto* const all = static_cast<std::byte*>(at(args, bias_));
    int64_t column = 0;
    for (const Part& part : parts_) {
      ops_.copy(all + static_cast<size_t>(column) * bytes_of(ops_.compute_type()),
                args.weights[part.kernel + 1], part.width);
      column += part.width;
    }
    return all;
  }

  void write_parameter_gradients(const LayerArguments& args, const void* x, const void* diff_y) {
    const bool separate = !several();
    float* const kernels =
        separate ? args.diff_parameters[parts_[0].kernel] : static_cast<float*>(at(args, diff_kernel_));
    by_kernel_->run(x, diff_y, nullptr, kernels, at(args, product_));
    float* biases = nullptr;
    if (use_bias_) {
      biases =
          separate ? args.diff_parameters[parts_[0].kernel + 1] : static_cast<float*>(at(args, diff_bias_));
      ops_.column_sum(biases, diff_y, rows_, width_);
    }
    if (separate) return;
    // copy_block() copies elements of the compute type without converting them. The gradients are floats.
    // Therefore each float is copied as one or two elements of the compute type.
    const auto units = static_cast<int64_t>(sizeof(float) / bytes_of(ops_.compute_type()));
    int64_t column = 0;
    for (const Part& part : parts_) {
      ops_.copy_block(args.diff_parameters[part.kernel], part.width * units, kernels + column, width_ * units,
                      inputs_, part.width * units);
      if (use_bias_) ops_.scale_add(args.diff_parameters[part.kernel + 1], biases + column, 1, 0, part.width);
      column += part.width;
    }
  }

  Ops& ops_;
  std::vector<Part> parts_;
  bool use_bias_;
  int64_t inputs_, rows_, width_ = 0;
  size_t kernel_ = 0, bias_ = 0, diff_kernel_ = 0, diff_bias_ = 0, product_ = 0;  // offsets in scratch memory
  std::unique_ptr<Matmul> forward_, by_input_, by_kernel_;
};

}  // namespace dtrain
