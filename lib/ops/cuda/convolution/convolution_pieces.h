// Splits a convolution whose batch is too large for cuDNN into pieces of fewer images.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ops/ops.h"

namespace dtrain::cuda {

/// Limits of one cuDNN call. cuDNN's fast engines reject tensors of 2^31 or more elements. Some engines fail
/// at run time if a batch has more than 65,535 images, because this is the maximum size of a CUDA grid in two
/// of its three dimensions.
struct PieceLimits {
  int64_t images = 65535;
  int64_t elements = INT32_MAX;  ///< maximum number of elements of the source, and of the destination
};

/// Returns the number of images per piece, for elements of type `type`. If the whole batch is within the
/// limits, returns the size of the batch. Otherwise, divides the batch into pieces of about the same size,
/// such that every piece begins at a multiple of 16 bytes. Throws Unsupported if even the smallest possible
/// piece exceeds the limits.
int64_t images_per_piece(const ConvolutionSpec& spec, DType type, const PieceLimits& limits = {});

using MakeConvolution = std::function<std::unique_ptr<Convolution>(const ConvolutionSpec&)>;

/// Returns make(spec) if the whole batch is one piece. Otherwise, returns a convolution that processes the
/// pieces one after the other, with convolutions that `make` creates for the smaller batches. The filter
/// gradients of the pieces are added in the order of the images.
std::unique_ptr<Convolution> convolution_in_pieces(Ops& ops, const ConvolutionSpec& spec,
                                                   const MakeConvolution& make,
                                                   const PieceLimits& limits = {});

}  // namespace dtrain::cuda
