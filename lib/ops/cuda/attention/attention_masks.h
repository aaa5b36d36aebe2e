// Masks of keys for attention by cuDNN, whose kernels add a bias to the scores instead of reading a mask.
#pragma once

#include "ops/attention.h"
#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// Writes the bias of each key ([batch, keys], in the compute type): 0 if it is valid, else a number so low
/// that the key's weight is 0. Also writes the first valid key of each sample ([batch]); `keys` if there is
/// none. If key_mask is null, all keys are valid.
void key_bias(CudaOps& ops, const AttentionSpec& spec, const uint8_t* key_mask, void* bias,
              int64_t* first_keys);

/// Corrects the results of queries that see no valid key: 0 in dst and infinity in logsumexp (which may be
/// null), so that the backward pass computes weights of 0.
void clear_blind_queries(CudaOps& ops, const AttentionSpec& spec, const int64_t* first_keys, void* dst,
                         float* logsumexp);

}  // namespace dtrain::cuda
