#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/cuda/current.h"
#include "ops/cuda/bias_activation.h"
#include "ops/cuda/convolution/convolution_kernels.h"
#include "ops/cuda/convolution/convolution_pieces.h"
#include "ops/cuda/convolution/depthwise_convolution.h"
#include "ops/cuda/convolution/dnn_convolution.h"
#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {
namespace {

/// Returns true for a 1x1 convolution with stride 1 and without padding or groups. It is a matrix product,
/// which reads the kernel in Keras's order and computes the kernel's gradient directly in float32.
bool is_product(const ConvolutionSpec& spec) {
  return spec.groups == 1 && spec.kernel_pixels() == 1 && spec.stride_depth == 1 && spec.stride_height == 1 &&
         spec.stride_width == 1 && spec.padding == Padding3{};
}

class ProductConvolution final : public Convolution {
 public:
  ProductConvolution(CudaOps& ops, const ConvolutionSpec& spec) {
    const int64_t pixels = spec.batch * spec.src_pixels();
    forward_ = ops.matmul({.m = pixels,
                           .n = spec.filters,
                           .k = spec.channels,
                           .bias = spec.bias,
                           .activation = spec.activation});
    if (!spec.training) return;
    filter_ = ops.matmul({.m = spec.channels,
                          .n = spec.filters,
                          .k = pixels,
                          .transpose_a = true,
                          .float32_result = true,
                          .activation = {}});
    if (!spec.needs_diff_src) return;
    data_ = ops.matmul(
        {.m = pixels, .n = spec.channels, .k = spec.filters, .transpose_b = true, .activation = {}});
  }

  Layout src_layout() const override { return Layout::plain; }
  Layout dst_layout() const override { return Layout::plain; }
  size_t scratch_bytes() const override {
    size_t bytes = forward_->scratch_bytes();
    if (filter_) bytes = std::max(bytes, filter_->scratch_bytes());
    if (data_) bytes = std::max(bytes, data_->scratch_bytes());
    return bytes;
  }
  size_t saved_bytes() const override { return 0; }

  void forward(const void* src, const void* kernel, const void* bias, void* dst, void*,
               void* scratch) override {
    forward_->run(src, kernel, bias, dst, scratch);
  }
  void backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void*,
                     void* scratch) override {
    data_->run(diff_dst, kernel, nullptr, diff_src, scratch);
  }
  bool computes_bias_gradient() const override { return false; }
  void backward_filter(const void* src, const void* diff_dst, float* diff_kernel, float* /*diff_bias*/,
                       void* scratch) override {
    filter_->run(src, diff_dst, nullptr, diff_kernel, scratch);
  }

 private:
  std::unique_ptr<Matmul> forward_, data_, filter_;
};

constexpr size_t kAlignment = 256;  // alignment of cuDNN's workspace and of allocations

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A convolution by cuDNN. If cuDNN has no engine for a direction (forward, data gradient or filter
/// gradient), dtrain's own kernels compute this direction.
///
/// cuDNN needs the convolution's kernel in its own order. If cuDNN computes both the forward call and the
/// data gradient, the reordered kernel is kept in the saved memory; otherwise, it is in scratch memory. The
/// kernel's gradient is always in scratch memory. If a plan needs a larger workspace than the context has,
/// this workspace is also in scratch memory, after the kernel.
class DnnBackedConvolution final : public Convolution {
 public:
  DnnBackedConvolution(CudaOps& ops, const ConvolutionSpec& spec)
      : ops_(ops), spec_(spec), direct_(ops, spec) {
    ops.context().workspace();  // allocates now, because allocation is impossible during a capture
    using enum DnnConvolution::Direction;
    const auto find = [&](DnnConvolution::Direction direction) {
      const DnnDevice device(ops.context().dnn(), ops.context().capability());
      auto found = DnnConvolution::find(device, ops.math(), spec, direction, ops.context().workspace_bytes());
      if (found) reserve(*found);
      return found;
    };
    forward_ = find(forward);
    if (!spec.training) return;
    filter_ = find(backward_filter);
    if (spec.needs_diff_src) data_ = find(backward_data);
  }

  Layout src_layout() const override { return Layout::plain; }
  Layout dst_layout() const override { return Layout::plain; }
  size_t scratch_bytes() const override {
    return kernel_bytes_ + (workspace_bytes_ > 0 ? workspace_bytes_ + kAlignment : 0);
  }
  size_t saved_bytes() const override {
    if (!saves_kernel()) return 0;
    return static_cast<size_t>(weights_per_filter() * spec_.filters) * bytes_of(ops_.compute_type());
  }

  Remarks remarks() const override {
    std::vector<std::string> direct, general;
    const auto look = [&](const char* direction, const std::optional<DnnConvolution>& plan, bool wanted) {
      if (wanted && !plan) direct.emplace_back(direction);
      if (plan && plan->engine_index() == 0) general.emplace_back(direction);
    };
    look("forward", forward_, true);
    look("data gradient", data_, spec_.training && spec_.needs_diff_src);
    look("filter gradient", filter_, spec_.training);
    std::vector<std::string> slow;
    if (!direct.empty())
      slow.push_back(
          fmt::format("cuDNN has no engine for {}, so dtrain's own kernels are used, which are slow",
                      fmt::join(direct, ", ")));
    if (!general.empty())
      slow.push_back(fmt::format("cuDNN has only engine 0, which is its slowest engine, for {}",
                                 fmt::join(general, ", ")));
    Remarks remarks{fmt::format("{}", fmt::join(slow, "; ")), ""};
    if (filter_ && ops_.compute_type() != DType::float32) remarks.note = gradient_note();
    return remarks;
  }

  void forward(const void* src, const void* kernel, const void* bias, void* dst, void* saved,
               void* scratch) override {
    if (!forward_) return direct_.forward(src, kernel, bias, dst, saved, scratch);
    const void* own = reordered(kernel, saves_kernel() && saved ? saved : scratch);
    forward_->run(ops_.context().dnn(), src, own, dst, workspace(scratch));
    const int64_t pixels = spec_.batch * spec_.dst_pixels();
    if (spec_.bias) {
      bias_activation(ops_, spec_.activation, bias, dst, pixels, spec_.filters);
    } else if (spec_.activation.kind != Activation::linear) {
      ops_.activation_forward(spec_.activation, dst, dst, pixels * spec_.filters);
    }
  }

  void backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void* saved,
                     void* scratch) override {
    if (!data_) return direct_.backward_data(diff_dst, kernel, diff_src, saved, scratch);
    const void* own = saves_kernel() && saved ? saved : reordered(kernel, scratch);
    data_->run(ops_.context().dnn(), diff_src, own, diff_dst, workspace(scratch));
  }

  bool computes_bias_gradient() const override { return false; }
  void backward_filter(const void* src, const void* diff_dst, float* diff_kernel, float* diff_bias,
                       void* scratch) override {
    if (!filter_) return direct_.backward_filter(src, diff_dst, diff_kernel, diff_bias, scratch);
    filter_->run(ops_.context().dnn(), src, scratch, diff_dst, workspace(scratch));
    transpose_to_float(ops_, filter_->weights_type(), scratch, diff_kernel, spec_.filters,
                       weights_per_filter());
  }

 private:
  bool saves_kernel() const { return forward_ && data_; }
  std::string gradient_note() const {
    const bool rounded = filter_->weights_type() == ops_.compute_type();
    return fmt::format(
        "cuDNN computes the filter gradients of convolutions in {}; set the environment variable "
        "DTRAIN_FILTER_GRADIENT={} to request {}",
        name_of(filter_->weights_type()), rounded ? "float32" : "compute",
        rounded ? "float32" : name_of(ops_.compute_type()));
  }
  int64_t weights_per_filter() const { return spec_.kernel_pixels() * spec_.filter_channels(); }

  /// Makes the scratch memory large enough for this plan.
  void reserve(const DnnConvolution& plan) {
    const size_t elements = static_cast<size_t>(weights_per_filter() * spec_.filters);
    kernel_bytes_ = std::max(kernel_bytes_, aligned(elements * bytes_of(plan.weights_type())));
    if (plan.workspace_bytes() > ops_.context().workspace_bytes())
      workspace_bytes_ = std::max(workspace_bytes_, plan.workspace_bytes());
  }

  /// Writes the kernel to `to` in cuDNN's order, and returns `to`. Keras's kernels are matrices with one
  /// filter per column; cuDNN needs one filter per row.
  const void* reordered(const void* kernel, void* to) {
    transpose(ops_, kernel, to, weights_per_filter(), spec_.filters);
    return to;
  }
  void* workspace(void* scratch) {
    if (workspace_bytes_ == 0) return ops_.context().workspace();
    const size_t address = reinterpret_cast<size_t>(scratch) + kernel_bytes_;
    return static_cast<char*>(scratch) + kernel_bytes_ + (aligned(address) - address);
  }

  CudaOps& ops_;
  ConvolutionSpec spec_;
  DirectConvolution direct_;
  std::optional<DnnConvolution> forward_, data_, filter_;
  size_t kernel_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Convolution> CudaOps::convolution(const ConvolutionSpec& spec) {
  const OnDevice on(context_.index());  // a plan may be created by the thread of another GPU
  if (spec.depthwise) return std::make_unique<DepthwiseConvolution>(*this, spec);
  if (is_product(spec)) return std::make_unique<ProductConvolution>(*this, spec);
  return convolution_in_pieces(*this, spec, [this](const ConvolutionSpec& piece) {
    return std::make_unique<DnnBackedConvolution>(*this, piece);
  });
}

}  // namespace dtrain::cuda
