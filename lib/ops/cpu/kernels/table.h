// Our own CPU kernels: single-threaded loops over a range, in one table per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/host_device.h"
#include "base/philox.h"
#include "ops/math/optimizers.h"
#include "ops/specs.h"

namespace dtrain::cpu {

/// Memory layout of images by channel: [images, blocks, pixels, inner]; element i of block b belongs to
/// channel b * inner + i.
struct ChannelLayout {
  int64_t blocks = 1, pixels = 1, inner = 1;
  DTRAIN_HOST_DEVICE int64_t channels() const { return blocks * inner; }
};
/// Normalisation of each channel (math::Normalizer), arrays of [channels].
struct NormalizedChannels {
  const float *mean, *scale, *shift;
};

/// Functions of one instruction set, with the same meaning as in Ops. Array arguments are whole arrays; a
/// kernel works on the range [begin, end) of them, so that several threads can share the work. The range
/// counts elements unless stated otherwise.
struct Kernels {
  const char* instruction_set;

  void (*fill)(float* dst, float value, int64_t begin, int64_t end);
  void (*scale_add)(float* dst, const float* src, float alpha, float beta, int64_t begin, int64_t end);
  void (*sum)(float* dst, const void* const* srcs, size_t count, const ActivationSpec& activation,
              int64_t begin, int64_t end);
  void (*multiply)(float* dst, const void* const* srcs, size_t count, int64_t begin, int64_t end);
  void (*sum_backward)(const ActivationSpec& spec, const float* saved, const void* const* diff_dsts,
                       size_t count, float* diff_src, int64_t begin, int64_t end);
  /// The range counts blocks of 4 elements; each sample starts a new block.
  void (*dropout)(float* dst, const float* src, float rate, const Philox& random, uint64_t step,
                  uint64_t first_sample, int64_t per_sample, int64_t begin, int64_t end);

  // The range counts rows.
  /// dst = act(src + bias); bias may be null.
  void (*bias_activation)(float* dst, const float* src, const float* bias, const ActivationSpec& activation,
                          int64_t columns, int64_t begin, int64_t end);
  void (*softmax_forward)(const float* src, float* dst, int64_t columns, int64_t begin, int64_t end);
  void (*softmax_backward)(const float* dst, const float* diff_dst, float* diff_src, int64_t columns,
                           int64_t begin, int64_t end);
  void (*layer_normalization_forward)(const float* src, const float* gamma, const float* beta, float epsilon,
                                      float* dst, float* mean, float* inverse_deviation, int64_t columns,
                                      int64_t begin, int64_t end);
  void (*layer_normalization_backward)(const float* src, const float* gamma, const float* mean,
                                       const float* inverse_deviation, const float* diff_dst, float* diff_src,
                                       int64_t columns, int64_t begin, int64_t end);

  /// Converts one row to float32.
  void (*convert_row)(const GatherSpec& spec, const void* src, float* dst);

  // Sums over rows.
  /// dst[c] for c in [first_column, last_column) = the sum of rows [begin, end).
  void (*column_sum)(float* dst, const float* src, int64_t columns, int64_t first_column, int64_t last_column,
                     int64_t begin, int64_t end);
  /// Writes the gradient of gamma. The range counts columns.
  void (*layer_normalization_scale)(const float* src, const float* mean, const float* inverse_deviation,
                                    const float* diff_dst, float* diff_gamma, int64_t rows, int64_t columns,
                                    int64_t begin, int64_t end);
  /// The range counts columns of the table and of diff_dst.
  void (*embedding_backward)(const int32_t* indices, const float* diff_dst, float* diff_table, int64_t n,
                             int64_t table_rows, int64_t columns, int64_t begin, int64_t end);

  // Batch normalisation (ops/math/normalization.h). The range counts the pixels of all images.
  /// Writes the range's count, means and sums of squared distances, math::moments_size(channels) doubles.
  /// `first_values`, of [channels], is scratch memory.
  void (*channel_moments)(const ChannelLayout& layout, const float* src, double* moments,
                          double* first_values, int64_t begin, int64_t end);
  void (*normalize_channels)(const ChannelLayout& layout, const NormalizedChannels& channels, bool relu,
                             const float* src, float* dst, int64_t begin, int64_t end);
  /// Writes 2 * channels sums over the range: the sums of the gradients before the relu, and of their
  /// products with src - mean.
  void (*channel_gradient_sums)(const ChannelLayout& layout, const NormalizedChannels& channels, bool relu,
                                const float* src, const float* diff_dst, double* sums, int64_t begin,
                                int64_t end);
  /// Computes diff_src from each channel's slope and offset (math::GradientLine). diff_src may be diff_dst.
  void (*normalize_channels_backward)(const ChannelLayout& layout, const NormalizedChannels& channels,
                                      bool relu, const float* src, const float* diff_dst, const float* slopes,
                                      const float* offsets, float* diff_src, int64_t begin, int64_t end);

  // The functions below return the range's part of the total.
  /// The range counts rows.
  double (*cross_entropy)(const CrossEntropySpec& spec, const float* prediction, const void* target,
                          const RowWeights& weights, float scale, float* diff_prediction, int64_t columns,
                          int64_t begin, int64_t end);
  /// Returns the sum over the elements, not their mean.
  double (*elementwise_loss)(const ElementwiseLossSpec& spec, const float* prediction, const float* target,
                             float scale, float* diff_prediction, int64_t begin, int64_t end);
  /// The range counts rows.
  double (*row_loss)(const RowLossSpec& spec, const float* prediction, const float* target,
                     const RowWeights& weights, float scale, float* diff_prediction, int64_t columns,
                     int64_t begin, int64_t end);
  /// The range counts rows. For an elementwise metric, returns the sum over the elements, not their mean.
  double (*metric)(const MetricSpec& spec, const float* prediction, const void* target,
                   const RowWeights& weights, int64_t columns, int64_t begin, int64_t end);
  double (*sum_of)(const float* src, int64_t begin, int64_t end);
  double (*sum_of_squares)(const float* src, int64_t n);

  void (*update)(const OptimizerRule& rule, const StepState& state, const GroupRule& group, float* weights,
                 const float* gradient, float* const* slots, int64_t begin, int64_t end);
};

/// Returns the tables that this CPU supports, best first.
std::vector<const Kernels*> supported_kernels();

}  // namespace dtrain::cpu
