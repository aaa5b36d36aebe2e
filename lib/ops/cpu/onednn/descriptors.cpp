#include "ops/cpu/onednn/descriptors.h"

#include <optional>
#include <string_view>
#include <tuple>

#include "ops/cpu/onednn/version.h"

namespace dtrain::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::primitive_attr;
using dnnl::prop_kind;
using tag = memory::format_tag;

constexpr auto kFloat = memory::data_type::f32;

/// A oneDNN eltwise post-op for an activation.
struct Eltwise {
  algorithm kind;
  float alpha = 0;
};

/// Returns nullopt for an activation that oneDNN does not fuse.
std::optional<Eltwise> eltwise_of(const ActivationSpec& activation) {
  switch (activation.kind) {
    case Activation::relu:
      return Eltwise{algorithm::eltwise_relu};
    case Activation::leaky_relu:
      return Eltwise{algorithm::eltwise_relu, activation.alpha};
    case Activation::tanh:
      return Eltwise{algorithm::eltwise_tanh};
    case Activation::sigmoid:
      return Eltwise{algorithm::eltwise_logistic};
    case Activation::elu:
      return Eltwise{algorithm::eltwise_elu, activation.alpha};
    default:
      return std::nullopt;
  }
}

/// Returns new attributes in every call, because copies share one handle: an activation appended to one copy
/// would apply to all.
primitive_attr attributes_with(const ActivationSpec& activation = {}) {
  primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (const auto eltwise = eltwise_of(activation)) {
    dnnl::post_ops post_ops;
    append_activation(post_ops, eltwise->kind, eltwise->alpha);
    attributes.set_post_ops(post_ops);
  }
  return attributes;
}

/// Parameters shared by a convolution's three primitives.
struct Window {
  memory::dims strides, dilation, before, after;
};

/// Returns one number for each axis of a window: {depth, height, width} for volumes, {height, width} for
/// images.
template <class Spec>
memory::dims axes_of(const Spec& spec, int64_t depth, int64_t height, int64_t width) {
  if (spec.is_volume()) return {depth, height, width};
  return {height, width};
}

Window window_of(const ConvolutionSpec& spec) {
  return {axes_of(spec, spec.stride_depth, spec.stride_height, spec.stride_width),
          axes_of(spec, spec.dilation_depth - 1, spec.dilation_height - 1, spec.dilation_width - 1),
          axes_of(spec, spec.padding.front, spec.padding.top, spec.padding.left),
          axes_of(spec, spec.padding.back, spec.padding.bottom, spec.padding.right)};
}

/// Returns whether a kernel has a separate axis of groups.
bool is_grouped(const ConvolutionSpec& spec) {
  return spec.depthwise || spec.groups > 1;
}

/// Returns flags that always include scale and shift: without these, some backward primitives of oneDNN 2.6
/// write through null pointers.
normalization_flags flags_of(const BatchNormalizationSpec& spec) {
  const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  return spec.relu ? flags | normalization_flags::fuse_norm_relu : flags;
}

algorithm algorithm_of(const PoolingSpec& spec) {
  return spec.kind == PoolingSpec::Kind::max ? algorithm::pooling_max
                                             : algorithm::pooling_avg_exclude_padding;
}

/// Calls describe() with the arguments of a pooling primitive, which are derived from the spec.
template <class Primitive, class Hint, class... First>
auto describe_pooling(const dnnl::engine& engine, const PoolingSpec& spec, const Hint& forward,
                      const First&... first) {
  const auto src =
      image_desc(image_dims(spec, spec.channels, spec.depth, spec.height, spec.width), spec.layout);
  const auto dst = image_desc(
      image_dims(spec, spec.channels, spec.out_depth(), spec.out_height(), spec.out_width()), spec.layout);
  const auto strides = axes_of(spec, spec.stride_depth, spec.stride_height, spec.stride_width),
             pool = axes_of(spec, spec.pool_depth, spec.pool_height, spec.pool_width),
             before = axes_of(spec, spec.padding.front, spec.padding.top, spec.padding.left),
             after = axes_of(spec, spec.padding.back, spec.padding.bottom, spec.padding.right);
  if constexpr (kDilatedPooling) {
    return describe<Primitive>(engine, attributes_with(), forward, first..., algorithm_of(spec), src, dst,
                               strides, pool, axes_of(spec, 0, 0, 0), before, after);
  } else {
    return describe<Primitive>(engine, attributes_with(), forward, first..., algorithm_of(spec), src, dst,
                               strides, pool, before, after);
  }
}

/// Calls describe() with the arguments for a batch normalization primitive.
template <class Primitive, class Hint, class... Gradient>
auto describe_normalization(const dnnl::engine& engine, const Hint& forward, prop_kind kind, float epsilon,
                            normalization_flags flags, const memory::desc& image,
                            const Gradient&... gradient) {
  if constexpr (kBothImages) {
    return describe<Primitive>(engine, attributes_with(), forward, kind, image, gradient..., image, epsilon,
                               flags);
  } else {
    return describe<Primitive>(engine, attributes_with(), forward, kind, image, gradient..., epsilon, flags);
  }
}

memory::desc normalized_desc(const BatchNormalizationSpec& spec) {
  return image_desc({spec.batch, spec.channels, spec.height, spec.width}, spec.layout);
}

}  // namespace

bool fuses(const ActivationSpec& activation) {
  return eltwise_of(activation).has_value();
}

memory::desc image_desc(const memory::dims& dims, Layout layout) {
  const bool volumes = dims.size() == 5;
  switch (layout) {
    case Layout::planar:
      return {dims, kFloat, volumes ? tag::ncdhw : tag::nchw};
    case Layout::blocked8:
      return {dims, kFloat, volumes ? tag::nCdhw8c : tag::nChw8c};
    case Layout::blocked16:
      return {dims, kFloat, volumes ? tag::nCdhw16c : tag::nChw16c};
    case Layout::plain:
      break;
  }
  return {dims, kFloat, volumes ? tag::ndhwc : tag::nhwc};
}

memory::dims kernel_dims(const ConvolutionSpec& spec) {
  const int64_t groups = spec.group_count();
  memory::dims dims = {spec.filters / groups, spec.filter_channels()};
  if (is_grouped(spec)) dims.insert(dims.begin(), groups);
  const memory::dims extents = axes_of(spec, spec.kernel_depth, spec.kernel_height, spec.kernel_width);
  dims.insert(dims.end(), extents.begin(), extents.end());
  return dims;
}

memory::desc kernel_desc(const ConvolutionSpec& spec) {
  const tag of_volumes = is_grouped(spec) ? tag::dhwigo : tag::dhwio;
  const tag of_images = is_grouped(spec) ? tag::hwigo : tag::hwio;
  return {kernel_dims(spec), kFloat, spec.is_volume() ? of_volumes : of_images};
}

dnnl::convolution_forward::primitive_desc convolution_forward_desc(const dnnl::engine& engine,
                                                                   const ConvolutionSpec& spec,
                                                                   const ConvolutionDescs& descs) {
  const Window window = window_of(spec);
  const auto kind = spec.training ? prop_kind::forward_training : prop_kind::forward_inference;
  const auto attributes = attributes_with(spec.activation);
  using Forward = dnnl::convolution_forward;
  if (!spec.bias) {
    return describe<Forward>(engine, attributes, std::tuple<>(), kind, algorithm::convolution_direct,
                             descs.src, descs.kernel, descs.dst, window.strides, window.dilation,
                             window.before, window.after);
  }
  return describe<Forward>(engine, attributes, std::tuple<>(), kind, algorithm::convolution_direct, descs.src,
                           descs.kernel, descs.bias, descs.dst, window.strides, window.dilation,
                           window.before, window.after);
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data_desc(
    const dnnl::engine& engine, const ConvolutionSpec& spec, const ConvolutionDescs& descs,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const Window window = window_of(spec);
  return describe<dnnl::convolution_backward_data>(
      engine, attributes_with(), std::tuple(forward), algorithm::convolution_direct, descs.src, descs.kernel,
      descs.dst, window.strides, window.dilation, window.before, window.after);
}

namespace {

/// Returns whether an implementation overruns its scratch memory. The 1x1 kernels of oneDNN 2.6 gather the
/// pixels of a strided convolution in scratch memory, which is too small if the number of channels is not a
/// multiple of the vector length. The kernels write past the end of this memory, into another thread's part
/// and the threads' barrier, and may hang there.
bool overruns_scratch(const dnnl::convolution_backward_weights::primitive_desc& desc,
                      const ConvolutionSpec& spec) {
  const std::string_view name = desc.impl_info_str();
  const int64_t vector = name.find("avx512") != name.npos ? 16 : 8;
  return name.starts_with("jit_1x1") && spec.stride_depth * spec.stride_height * spec.stride_width > 1 &&
         spec.filter_channels() % vector != 0;
}

}  // namespace

dnnl::convolution_backward_weights::primitive_desc convolution_backward_filter_desc(
    const dnnl::engine& engine, const ConvolutionSpec& spec, const ConvolutionDescs& descs,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const Window window = window_of(spec);
  using Backward = dnnl::convolution_backward_weights;
  const auto accept = [&](const Backward::primitive_desc& desc) { return !overruns_scratch(desc, spec); };
  if (!spec.bias) {
    return describe_accepted<Backward>(accept, engine, attributes_with(), std::tuple(forward),
                                       algorithm::convolution_direct, descs.src, descs.kernel, descs.dst,
                                       window.strides, window.dilation, window.before, window.after);
  }
  return describe_accepted<Backward>(accept, engine, attributes_with(), std::tuple(forward),
                                     algorithm::convolution_direct, descs.src, descs.kernel, descs.bias,
                                     descs.dst, window.strides, window.dilation, window.before, window.after);
}

dnnl::matmul::primitive_desc matmul_desc(const dnnl::engine& engine, const MatmulSpec& spec) {
  const int64_t m = spec.m, n = spec.n, k = spec.k;
  const auto operand = [](int64_t rows, int64_t columns, bool transposed) {
    const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{columns, 1};
    return memory::desc({rows, columns}, kFloat, strides);
  };
  return describe<dnnl::matmul>(engine, attributes_with(), std::tuple(), operand(m, k, spec.transpose_a),
                                operand(k, n, spec.transpose_b), operand(m, n, false));
}

dnnl::pooling_forward::primitive_desc pooling_forward_desc(const dnnl::engine& engine,
                                                           const PoolingSpec& spec) {
  const auto kind = spec.training ? prop_kind::forward_training : prop_kind::forward_inference;
  return describe_pooling<dnnl::pooling_forward>(engine, spec, std::tuple<>(), kind);
}

dnnl::pooling_backward::primitive_desc pooling_backward_desc(
    const dnnl::engine& engine, const PoolingSpec& spec,
    const dnnl::pooling_forward::primitive_desc& forward) {
  return describe_pooling<dnnl::pooling_backward>(engine, spec, std::tuple(forward));
}

dnnl::batch_normalization_forward::primitive_desc batch_normalization_forward_desc(
    const dnnl::engine& engine, const BatchNormalizationSpec& spec, bool training) {
  auto flags = flags_of(spec);
  if (!training) flags |= normalization_flags::use_global_stats;
  const auto kind = training ? prop_kind::forward_training : prop_kind::forward_inference;
  return describe_normalization<dnnl::batch_normalization_forward>(engine, std::tuple<>(), kind, spec.epsilon,
                                                                   flags, normalized_desc(spec));
}

dnnl::batch_normalization_backward::primitive_desc batch_normalization_backward_desc(
    const dnnl::engine& engine, const BatchNormalizationSpec& spec,
    const dnnl::batch_normalization_forward::primitive_desc& forward) {
  const auto desc = normalized_desc(spec);
  return describe_normalization<dnnl::batch_normalization_backward>(
      engine, std::tuple(forward), prop_kind::backward, spec.epsilon, flags_of(spec), desc, desc);
}

}  // namespace dtrain::cpu
