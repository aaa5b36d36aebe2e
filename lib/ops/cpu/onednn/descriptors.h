// oneDNN's primitive descriptors, independent of its version (version.h).
#pragma once

#include <dnnl.hpp>

#include "ops/specs.h"

namespace dtrain::cpu {

/// Returns the dims of volumes, [n, channels, depth, height, width], or of images, which lack the depth.
template <class Spec>
dnnl::memory::dims image_dims(const Spec& spec, int64_t channels, int64_t depth, int64_t height,
                              int64_t width) {
  if (spec.is_volume()) return {spec.batch, channels, depth, height, width};
  return {spec.batch, channels, height, width};
}
/// Returns the memory descriptor of arrays with such dims. The dims are the same for every layout.
dnnl::memory::desc image_desc(const dnnl::memory::dims& dims, Layout layout);

/// Returns the dimensions of a kernel: [filters, channels, height, width], for volumes [filters, channels,
/// depth, height, width], or [channels, multiplier, 1, height, width] if depthwise.
dnnl::memory::dims kernel_dims(const ConvolutionSpec& spec);
/// Returns the memory descriptor of a kernel in Keras's layout.
dnnl::memory::desc kernel_desc(const ConvolutionSpec& spec);

/// Returns whether a forward convolution applies this activation. The caller applies the others.
bool fuses(const ActivationSpec& activation);

/// Memory descriptors shared by a convolution's primitives.
struct ConvolutionDescs {
  dnnl::memory::desc src, kernel, bias, dst;  // bias is a zero descriptor if there is none
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

/// Returns the descriptor of a product without bias and activation.
dnnl::matmul::primitive_desc matmul_desc(const dnnl::engine& engine, const MatmulSpec& spec);

dnnl::pooling_forward::primitive_desc pooling_forward_desc(const dnnl::engine& engine,
                                                           const PoolingSpec& spec);
dnnl::pooling_backward::primitive_desc pooling_backward_desc(
    const dnnl::engine& engine, const PoolingSpec& spec,
    const dnnl::pooling_forward::primitive_desc& forward);

/// Returns the descriptor of a batch normalization with scale and shift, even if the spec has none.
dnnl::batch_normalization_forward::primitive_desc batch_normalization_forward_desc(
    const dnnl::engine& engine, const BatchNormalizationSpec& spec, bool training);
dnnl::batch_normalization_backward::primitive_desc batch_normalization_backward_desc(
    const dnnl::engine& engine, const BatchNormalizationSpec& spec,
    const dnnl::batch_normalization_forward::primitive_desc& forward);

}  // namespace dtrain::cpu
