// Convolutions of batches that are too large for cuDNN: splits them into pieces of fewer images.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ops/ops.h"

namespace dtrain::cuda {

/// Limits of one cuDNN call. The fast engines reject tensors of 2^31 or more elements. Above 65,535 images,
/// which is a grid's limit in two of its axes, some engines fail when they run.
struct PieceLimits {
  int64_t images = 65535;
  int64_t elements = INT32_MAX;  ///< maximum number of elements of the source, and of the destination
};

/// Returns the number of images per piece for elements of `type`: the whole batch if it is within the limits,
/// else about the same number for all pieces, such that they begin at multiples of 16 bytes. Throws
/// Unsupported if even the smallest such piece exceeds the limits.
int64_t images_per_piece(const ConvolutionSpec& spec, DType type, const PieceLimits& limits = {});

using MakeConvolution = std::function<std::unique_ptr<Convolution>(const ConvolutionSpec&)>;

/// Returns make(spec) if the batch is one piece. Otherwise returns a convolution that runs one piece after
/// the other with convolutions from `make` for smaller batches; it adds the filter gradients of the pieces in
/// the order of images.
std::unique_ptr<Convolution> convolution_in_pieces(Ops& ops, const ConvolutionSpec& spec,
                                                   const MakeConvolution& make,
                                                   const PieceLimits& limits = {});

}  // namespace dtrain::cuda
