// Formulas of attention that the CPU and the GPU share.
#pragma once

#include <cstdint>
#include <math.h>

#include "base/host_device.h"
#include "base/philox.h"
#include "ops/math/functions.h"

namespace dtrain::math {

/// State of a softmax that is computed in one pass over the scores (M. Milakov and N. Gimelshein, "Online
/// normalizer calculation for softmax", arXiv:1805.02867, 2018): the largest score that the query has seen so
/// far, and the sum of exp(score - largest) over these scores.
struct OnlineSoftmax {
  float largest = -INFINITY;
  float sum = 0;

  /// Returns the number that must be subtracted from the scores before exp(). It is finite even if all scores
  /// are -infinity.
  DTRAIN_HOST_DEVICE float shift() const { return largest == -INFINITY ? 0.0f : largest; }
  /// Returns the factor by which the sums so far must be multiplied when the largest score changes to `next`.
  DTRAIN_HOST_DEVICE float factor(float next) const { return next == largest ? 1.0f : exp(largest - next); }
  /// Returns the factor by which the weighted sum of the values must be multiplied at the end. It is 0 if the
  /// query sees no key.
  DTRAIN_HOST_DEVICE float scale() const { return sum == 0.0f ? 0.0f : 1.0f / sum; }
  /// Returns log(sum of exp(score)). If the query sees no key, returns infinity, so that the backward pass
  /// computes weights of 0.
  DTRAIN_HOST_DEVICE float logsumexp() const { return sum == 0.0f ? INFINITY : largest + log(sum); }
};

/// Returns the four random words for the dropout of the attention weights of keys 4 * key_block to 4 *
/// key_block + 3 (see AttentionDropout in ops/attention.h). `row` is query position * heads + head.
DTRAIN_HOST_DEVICE inline Philox::Block attention_words(const Philox& random, uint64_t step, uint64_t row,
                                                        uint64_t sample, uint64_t key_block) {
  return random(step + (row << 32), sample << 32 | key_block);
}

}  // namespace dtrain::math
