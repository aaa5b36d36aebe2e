#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/onednn/descriptors.h"

namespace dtrain::cpu {
namespace {

using dnnl::memory;

/// The primitives of a convolution and the layouts of its images.
struct Choice {
  Layout src, dst;
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_data::primitive_desc backward_data;       // empty if not needed
  dnnl::convolution_backward_weights::primitive_desc backward_filter;  // empty if not needed
  // The lowest rank_of() among the primitives.
  int rank;
};

memory::dims src_dims(const ConvolutionSpec& spec) {
  return image_dims(spec, spec.channels, spec.depth, spec.height, spec.width);
}
memory::dims dst_dims(const ConvolutionSpec& spec) {
  return image_dims(spec, spec.filters, spec.out_depth(), spec.out_height(), spec.out_width());
}

memory::desc any_of(const memory::dims& dims) {
  return {dims, memory::data_type::f32, memory::format_tag::any};
}

ConvolutionDescs descs_of(const ConvolutionSpec& spec, const memory::desc& src, const memory::desc& dst) {
  const auto bias = spec.bias ? memory::desc({spec.filters}, memory::data_type::f32, memory::format_tag::x)
                              : memory::desc();
  return {src, any_of(kernel_dims(spec)), bias, dst};
}

/// Returns the Layout of a memory descriptor. The layout is blocked only if the channels fill whole blocks.
Layout layout_of(const memory::desc& desc, const memory::dims& dims) {
  const int64_t channels = dims[1];
  if (channels % 16 == 0 && desc == image_desc(dims, Layout::blocked16)) return Layout::blocked16;
  if (channels % 8 == 0 && desc == image_desc(dims, Layout::blocked8)) return Layout::blocked8;
  if (desc == image_desc(dims, Layout::planar)) return Layout::planar;
  return Layout::plain;
}

/// Returns the rank of an implementation. Implementations with a higher rank are preferred: 0 is oneDNN's
/// reference code, which exists to check results; 1 is code that calls matrix products; 2 is code that oneDNN
/// generates at run time.
int rank_of(const dnnl::primitive_desc_base& desc) {
  const std::string_view name = desc.impl_info_str();
  if (name.find("ref") != name.npos) return 0;
  return name.find("gemm") != name.npos && name.find("brg") == name.npos ? 1 : 2;
}

/// Returns nullopt if oneDNN has no convolution for these layouts.
std::optional<Choice> choice_with(const dnnl::engine& engine, const ConvolutionSpec& spec, Layout src,
                                  Layout dst) {
  try {
    const auto descs = descs_of(spec, image_desc(src_dims(spec), src), image_desc(dst_dims(spec), dst));
    Choice choice{src, dst, convolution_forward_desc(engine, spec, descs), {}, {}, 0};
    choice.rank = rank_of(choice.forward);
    if (!spec.training) return choice;
    choice.backward_filter = convolution_backward_filter_desc(engine, spec, descs, choice.forward);
    choice.rank = std::min(choice.rank, rank_of(choice.backward_filter));
    if (spec.needs_diff_src) {
      choice.backward_data = convolution_backward_data_desc(engine, spec, descs, choice.forward);
      choice.rank = std::min(choice.rank, rank_of(choice.backward_data));
    }
    return choice;
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
}

/// Tries oneDNN's preferred layouts first and the plain layout last. Returns the first choice with the
/// highest rank.
Choice choose(const dnnl::engine& engine, const ConvolutionSpec& spec) {
  std::optional<Choice> best;
  const auto consider = [&](Layout src, Layout dst) {
    if (best && best->rank == 2) return;
    auto choice = choice_with(engine, spec, src, dst);
    if (choice && (!best || choice->rank > best->rank)) best = std::move(choice);
  };
  if (!spec.plain_only) {
    const auto wish = convolution_forward_desc(
        engine, spec, descs_of(spec, any_of(src_dims(spec)), any_of(dst_dims(spec))));
    const Layout src = layout_of(wish.src_desc(), src_dims(spec)),
                 dst = layout_of(wish.dst_desc(), dst_dims(spec));
    consider(src, dst);
    consider(Layout::plain, dst);
  }
  consider(Layout::plain, Layout::plain);
  if (!best) throw Unsupported("oneDNN has no implementation of a convolution with these sizes");
  return *std::move(best);
}

size_t aligned(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// A primitive that reads or writes the convolution's kernel, and the conversion between Keras's kernel
/// format and the format that the primitive needs. The converted kernel is in scratch memory. If both formats
/// are the same, `reorder` is empty and the kernel is not copied.
struct KernelCall {
  Call call, reorder;
  size_t kernel_bytes = 0;

  size_t scratch_bytes() const {
    return kernel_bytes + aligned(std::max(call.scratch_bytes(), reorder ? reorder.scratch_bytes() : 0));
  }
  /// Returns the scratch memory that follows the converted kernel.
  void* rest(void* scratch) const { return static_cast<char*>(scratch) + kernel_bytes; }
};

KernelCall reading_kernel(const Engine& engine, const memory::desc& keras, const memory::desc& own,
                          Call call) {
  if (own == keras) return {std::move(call), {}, 0};
  return {std::move(call), reorder_call(engine, keras, own), aligned(own.get_size())};
}

KernelCall writing_kernel(const Engine& engine, const memory::desc& keras, const memory::desc& own,
                          Call call) {
  if (own == keras) return {std::move(call), {}, 0};
  return {std::move(call), reorder_call(engine, own, keras), aligned(own.get_size())};
}

class CpuConvolution final : public Convolution {
 public:
  CpuConvolution(CpuOps& ops, const ConvolutionSpec& spec) : ops_(ops), engine_(ops.engine()) {
    if (!fuses(spec.activation)) activation_ = spec.activation;
    dst_elements_ = spec.batch * spec.filters * spec.dst_pixels();
    const Choice choice = choose(engine_.engine, spec);
    // With one channel, the planar and the plain layout are the same in memory.
    src_layout_ = choice.src == Layout::planar && spec.channels == 1 ? Layout::plain : choice.src;
    dst_layout_ = choice.dst == Layout::planar && spec.filters == 1 ? Layout::plain : choice.dst;
    const auto keras = kernel_desc(spec);
    const auto bias = descs_of(spec, {}, {}).bias;
    const auto& [forward, data, filter] =
        std::tie(choice.forward, choice.backward_data, choice.backward_filter);
    forward_ = reading_kernel(engine_, keras, forward.weights_desc(),
                              Call(engine_, dnnl::convolution_forward(forward), forward.scratchpad_desc(),
                                   {{DNNL_ARG_SRC, forward.src_desc()},
                                    {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                                    {DNNL_ARG_BIAS, bias},
                                    {DNNL_ARG_DST, forward.dst_desc()}}));
    if (data) {
      data_ = reading_kernel(engine_, keras, data.weights_desc(),
                             Call(engine_, dnnl::convolution_backward_data(data), data.scratchpad_desc(),
                                  {{DNNL_ARG_DIFF_DST, data.diff_dst_desc()},
                                   {DNNL_ARG_WEIGHTS, data.weights_desc()},
                                   {DNNL_ARG_DIFF_SRC, data.diff_src_desc()}}));
    }
    if (filter) {
      filter_ =
          writing_kernel(engine_, keras, filter.diff_weights_desc(),
                         Call(engine_, dnnl::convolution_backward_weights(filter), filter.scratchpad_desc(),
                              {{DNNL_ARG_SRC, filter.src_desc()},
                               {DNNL_ARG_DIFF_DST, filter.diff_dst_desc()},
                               {DNNL_ARG_DIFF_WEIGHTS, filter.diff_weights_desc()},
                               {DNNL_ARG_DIFF_BIAS, bias}}));
    }
  }

  Layout src_layout() const override { return src_layout_; }
  Layout dst_layout() const override { return dst_layout_; }
  size_t scratch_bytes() const override {
    return std::max({forward_.scratch_bytes(), data_.scratch_bytes(), filter_.scratch_bytes()});
  }

  /// Returns 0, because nothing is saved: oneDNN uses a different kernel order in each direction.
  size_t saved_bytes() const override { return 0; }

  void forward(const void* src, const void* kernel, const void* bias, void* dst, void*,
               void* scratch) override {
    const void* own = read_kernel(forward_, kernel, scratch);
    forward_.call.run(engine_, {src, own, bias, dst}, forward_.rest(scratch));
    if (activation_.kind != Activation::linear) ops_.activation_forward(activation_, dst, dst, dst_elements_);
  }

  void backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void*,
                     void* scratch) override {
    const void* own = read_kernel(data_, kernel, scratch);
    data_.call.run(engine_, {diff_dst, own, diff_src}, data_.rest(scratch));
  }

  bool computes_bias_gradient() const override { return true; }
  void backward_filter(const void* src, const void* diff_dst, float* diff_kernel, float* diff_bias,
                       void* scratch) override {
    void* const own = filter_.reorder ? scratch : diff_kernel;
    filter_.call.run(engine_, {src, diff_dst, own, diff_bias}, filter_.rest(scratch));
    if (filter_.reorder) filter_.reorder.run(engine_, {own, diff_kernel}, filter_.rest(scratch));
  }

 private:
  const void* read_kernel(KernelCall& of, const void* kernel, void* scratch) {
    if (!of.reorder) return kernel;
    of.reorder.run(engine_, {kernel, scratch}, of.rest(scratch));
    return scratch;
  }

  CpuOps& ops_;
  const Engine& engine_;
  ActivationSpec activation_;  // applied after the convolution, because oneDNN does not fuse it
  int64_t dst_elements_;
  Layout src_layout_, dst_layout_;
  KernelCall forward_, data_, filter_;
};

}  // namespace

std::unique_ptr<Convolution> CpuOps::convolution(const ConvolutionSpec& spec) {
  return prepared("convolution", [&] { return std::make_unique<CpuConvolution>(*this, spec); });
}

}  // namespace dtrain::cpu
