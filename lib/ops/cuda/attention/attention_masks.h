// Key masks for cuDNN's attention. cuDNN's kernels do not read a mask; instead, a bias for each key is added
// to the scores.
#pragma once

#include "ops/attention.h"
#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// Returns the number of elements from the biases of a sample to the biases of the next sample. The biases of
/// each sample are aligned to 16 bytes.
inline int64_t bias_stride(const AttentionSpec& spec) {
  return (spec.keys + 7) / 8 * 8;
}

/// Converts a mask to biases ([batch, bias_stride(spec)], in the compute type). The bias is 0 for a valid
/// key; for a masked key, it is so low that the weight of the key is 0. Also writes the index of the first
/// valid key of each sample to first_keys ([batch]), or the number of keys if the sample has no valid key. If
/// key_mask is null, all keys are valid.
void key_bias(CudaOps& ops, const AttentionSpec& spec, const uint8_t* key_mask, void* bias,
              int64_t* first_keys);

/// Corrects the results of queries that see no valid key: sets dst to 0 and logsumexp (which may be null) to
/// infinity. With infinity, the backward pass computes weights of 0 for these queries.
void clear_blind_queries(CudaOps& ops, const AttentionSpec& spec, const int64_t* first_keys, void* dst,
                         float* logsumexp);

}  // namespace dtrain::cuda
