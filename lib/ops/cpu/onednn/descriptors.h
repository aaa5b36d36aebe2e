// Functions that create oneDNN's primitive descriptors. They work with all supported versions of oneDNN (see
// version.h).
#pragma once

#include <dnnl.hpp>

#include "ops/specs.h"

namespace dtrain::cpu {

/// Returns the dimensions of a batch in oneDNN's order: [n, channels, depth, height, width] for volumes, [n,
/// channels, height, width] for images.
template <class Spec>
dnnl::memory::dims image_dims(const Spec& spec, int64_t channels, int64_t depth, int64_t height,
                              int64_t width) {
  if (spec.is_volume()) return {spec.batch, channels, depth, height, width};
  return {spec.batch, channels, height, width};
}
/// Returns the memory descriptor of a batch of images with dimensions `dims` (see image_dims()) in the layout
/// `layout`.
dnnl::memory::desc image_desc(const dnnl::memory::dims& dims, Layout layout);

/// Returns the dimensions of a kernel: [filters, channels, height, width] for images, and [filters, channels,
/// depth, height, width] for volumes. If the convolution has groups or is depthwise, the dimensions are
/// [groups, filters / groups, channels / groups, ...] instead.
dnnl::memory::dims kernel_dims(const ConvolutionSpec& spec);
/// Returns the memory descriptor of a kernel in Keras's layout.
dnnl::memory::desc kernel_desc(const ConvolutionSpec& spec);

/// Returns whether oneDNN can fuse this activation with a forward convolution. Otherwise, the caller must
/// apply the activation in a separate pass.
bool fuses(const ActivationSpec& activation);

/// Memory descriptors shared by a convolution's primitives.
struct ConvolutionDescs {
  dnnl::memory::desc src, kernel, bias, dst;  // `bias` is a zero descriptor if the convolution has no bias
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

/// Returns the descriptor of a batch normalization. The primitive always has a scale and a shift, even if the
/// spec has no gamma or beta.
dnnl::batch_normalization_forward::primitive_desc batch_normalization_forward_desc(
    const dnnl::engine& engine, const BatchNormalizationSpec& spec, bool training);
dnnl::batch_normalization_backward::primitive_desc batch_normalization_backward_desc(
    const dnnl::engine& engine, const BatchNormalizationSpec& spec,
    const dnnl::batch_normalization_forward::primitive_desc& forward);

}  // namespace dtrain::cpu
