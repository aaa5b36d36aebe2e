// Attention by cuDNN's fused kernels, without dropout.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "ops/attention.h"
#include "ops/cuda/dnn_graph.h"

namespace dtrain::cuda {

/// The arrays of a call. Arrays of the compute type are aligned to 16 bytes.
struct DnnAttentionArrays {
  const void *query = nullptr, *key = nullptr, *value = nullptr;
  const void* bias =
      nullptr;          ///< [batch, bias_stride()], added to the scores; null unless the spec has masks
  void* dst = nullptr;  ///< written by the forward pass, read by the backward pass
  /// [batch, heads, queries]; written by the forward pass, read by the backward pass.
  float* logsumexp = nullptr;
  // The following arrays are only used by the backward pass.
  const void* diff_dst = nullptr;
  float* dots = nullptr;        ///< scratch memory, [batch, heads, queries]
  float* query_sums = nullptr;  ///< scratch memory, [batch, heads, queries, key_dim]
  void *diff_query = nullptr, *diff_key = nullptr, *diff_value = nullptr;
};

/// A prepared pass of attention (forward or backward). It is an operation graph of matrix products,
/// elementwise operations and reductions. cuDNN computes the forward graph with one kernel and the backward
/// graph with a few kernels, without storing the attention weights. cuDNN only recognizes graphs with the
/// structure of cudnn-frontend's graphs (see CompositeSDPANode and CompositeSDPABackwardNode in
/// cudnn_frontend/node/scaled_dot_product_flash_attention.h), so these graphs have the same structure.
class DnnAttention {
 public:
  enum class Direction { forward, backward };

  /// Returns true if a pass is free of the known bugs of this version of cuDNN (in the form of
  /// cudnnGetVersion()) on GPUs of this compute capability.
  static bool is_reliable(const AttentionSpec& spec, Direction direction, int capability, size_t version);

  /// Returns nullopt if cuDNN has no engine for this pass, or if the pass is not reliable. Also returns
  /// nullopt for a backward pass if `math` requires deterministic results, because cuDNN's backward kernels
  /// add the query gradients in an unspecified order (although their numerical notes do not say so).
  static std::optional<DnnAttention> find(const DnnDevice& device, const GpuMath& math,
                                          const AttentionSpec& spec, Direction direction);

  /// Returns the maximum workspace size of a plan, in bytes. It grows linearly with the number of positions.
  static size_t most_workspace(const AttentionSpec& spec);

  size_t workspace_bytes() const { return plan_.workspace_bytes(); }
  /// Returns the plan's engine configuration.
  const DnnDescriptor& engine() const { return plan_.engine(); }
  /// Enqueues the call on the stream of `handle`, which must belong to the device for which the plan was
  /// found.
  void run(cudnnHandle_t handle, const DnnAttentionArrays& arrays, void* workspace) const;

 private:
  DnnAttention(DnnPlan plan, const AttentionSpec& spec, Direction direction)
      : plan_(std::move(plan)), spec_(spec), direction_(direction) {}

  DnnPlan plan_;
  AttentionSpec spec_;
  Direction direction_;
};

}  // namespace dtrain::cuda
