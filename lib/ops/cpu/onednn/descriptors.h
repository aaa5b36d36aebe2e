// oneDNN's primitive descriptors, whatever its version (version.h).
#pragma once

#include <dnnl.hpp>

#include "ops/specs.h"

namespace dtrain::cpu {

/// The dims of arrays of volumes or of images: [n, channels, depth, height, width], without the depth where
/// it does not count.
template <class Spec>
dnnl::memory::dims image_dims(const Spec& spec, int64_t channels, int64_t depth, int64_t height,
                              int64_t width) {
  if (spec.is_volume()) return {spec.batch, channels, depth, height, width};
  return {spec.batch, channels, height, width};
}
/// The description of arrays with such dims, whatever the layout is.
dnnl::memory::desc image_desc(const dnnl::memory::dims& dims, Layout layout);

/// The dimensions [filters, channels, height, width] of a kernel, of volumes [filters, channels, depth,
/// height, width]; a depthwise one has [channels, multiplier, 1, height, width].
dnnl::memory::dims kernel_dims(const ConvolutionSpec& spec);
/// The description of a kernel as Keras keeps it.
dnnl::memory::desc kernel_desc(const ConvolutionSpec& spec);

/// Returns whether a forward convolution applies this activation. The caller applies the others.
bool fuses(const ActivationSpec& activation);

/// What a convolution's primitives agree on.
struct ConvolutionDescs {
  dnnl::memory::desc src, kernel, bias, dst;  // bias is zero where there is none
};
dnnl::convolution_forward::primitive_desc convolution_forward_desc(const dnnl::engine& engine,
                                                                   const ConvolutionSpec& spec,
                                                                   const ConvolutionDescs& descs);
dnnl::convolution_backward_data::primitive_desc convolution_backward_data_desc(
    const dnnl::engine& engine, const ConvolutionSpec& spec, const ConvolutionDescs& descs,
    const dnnl::convolution_forward::primitive_desc& forward);
dnnl::convolution_backward_weights::primitive_desc convolution_backward_filter_desc(
    const dnnl::engine& engine, const ConvolutionSpec& spec, const ConvolutionDescs& descs,
    const dnnl::convolution_forward::primitive_desc& forward);

/// The descriptor of a product without its bias and activation.
dnnl::matmul::primitive_desc matmul_desc(const dnnl::engine& engine, const MatmulSpec& spec);

dnnl::pooling_forward::primitive_desc pooling_forward_desc(const dnnl::engine& engine,
                                                           const PoolingSpec& spec);
dnnl::pooling_backward::primitive_desc pooling_backward_desc(
    const dnnl::engine& engine, const PoolingSpec& spec,
    const dnnl::pooling_forward::primitive_desc& forward);

/// The descriptor of a batch normalisation with scale and shift, whatever the spec says of them.
dnnl::batch_normalization_forward::primitive_desc batch_normalization_forward_desc(
    const dnnl::engine& engine, const BatchNormalizationSpec& spec, bool training);
dnnl::batch_normalization_backward::primitive_desc batch_normalization_backward_desc(
    const dnnl::engine& engine, const BatchNormalizationSpec& spec,
    const dnnl::batch_normalization_forward::primitive_desc& forward);

}  // namespace dtrain::cpu
