// Convolutions of batches that are too large for cuDNN: cut into pieces of fewer images.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ops/ops.h"

namespace dtrain::cuda {

/// What one call of cuDNN is given at most. From 2^31 elements of a tensor on its fast engines refuse, and
/// past 65,535 images, a grid's limit in two of its axes, some fail when they are run.
struct PieceLimits {
  int64_t images = 65535;
  int64_t elements = INT32_MAX;  ///< of the source, and of the destination
};

/// The images of a piece, of elements of `type`: the batch where that keeps to the limits, else about the
/// same for all pieces, which begin at multiples of 16 bytes. Throws Unsupported where so few are too large.
int64_t images_per_piece(const ConvolutionSpec& spec, DType type, const PieceLimits& limits = {});

using MakeConvolution = std::function<std::unique_ptr<Convolution>(const ConvolutionSpec&)>;

/// make(spec) where the batch is one piece. Else a convolution that calls those that `make` gives for smaller
/// batches one piece after the other; the filter's gradients of the pieces are added in the order of images.
std::unique_ptr<Convolution> convolution_in_pieces(Ops& ops, const ConvolutionSpec& spec,
                                                   const MakeConvolution& make,
                                                   const PieceLimits& limits = {});

}  // namespace dtrain::cuda
