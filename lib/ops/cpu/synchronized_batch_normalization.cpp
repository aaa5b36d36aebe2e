// Batch normalization over the rows of several replicas. It uses dtrain's own kernels, because oneDNN's
// primitives cannot use sums that were computed elsewhere.
#include <algorithm>

#include "ops/cpu/cpu_ops.h"
#include "ops/math/normalization.h"

namespace dtrain::cpu {
namespace {

ChannelLayout channel_layout(const BatchNormalizationSpec& spec) {
  const int64_t pixels = spec.height * spec.width, channels = spec.channels;
  switch (spec.layout) {
    case Layout::planar:
      return {channels, pixels, 1};
    case Layout::blocked8:
      return {channels / 8, pixels, 8};
    case Layout::blocked16:
      return {channels / 16, pixels, 16};
    case Layout::plain:
      break;
  }
  return {1, pixels, channels};
}

class CpuSynchronizedBatchNormalization final : public SynchronizedBatchNormalization {
 public:
  CpuSynchronizedBatchNormalization(const CpuOps& ops, const BatchNormalizationSpec& spec, int replicas)
      : kernels_(ops.kernels()),
        threads_(ops.threads()),
        spec_(spec),
        layout_(channel_layout(spec)),
        replicas_(replicas) {}

  /// Returns the scratch size for all threads. Each thread stores its moments, the first value of each
  /// channel, and the moments of a run of rows.
  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * stride()) * sizeof(double); }
  /// Returns the size of the values that forward saves: the number of rows of all replicas (a double), and
  /// the four arrays of `Kept`.
  size_t saved_bytes() const override {
    return sizeof(double) + 4 * static_cast<size_t>(spec_.channels) * sizeof(float);
  }

  void moments(const TrainingArguments& args, double* mine) override {
    auto* const partial = static_cast<double*>(args.scratch);
    const int64_t channels = spec_.channels;
    for (int thread = 0; thread < threads_; ++thread) partial[thread * stride()] = 0.0;  // no rows yet
    share([&](int64_t begin, int64_t end, int thread) {
      double* const own = partial + thread * stride();
      double* const first_values = own + math::moments_size(channels);
      if (!spec_.masked)
        return kernels_.channel_moments(layout_, f32(args.src), own, first_values, begin, end);
      double* const of_run = first_values + channels;
      std::fill_n(own, math::moments_size(channels), 0.0);
      each_masked_run(args.mask, begin, end, [&](bool valid, int64_t first, int64_t last) {
        if (!valid) return;
        kernels_.channel_moments(layout_, f32(args.src), of_run, first_values, first, last);
        add_moments(own, of_run);
      });
    });
    mine[0] = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const math::Moments own = math::moments_of(partial, threads_, stride(), channels, c);
      mine[0] = own.count;
      mine[1 + c] = own.mean;
      mine[1 + channels + c] = own.squares;
    }
  }

  void forward(const TrainingArguments& args, const double* all) override {
    const Kept kept = kept_in(args.saved);
    const int64_t channels = spec_.channels;
    for (int64_t c = 0; c < channels; ++c) {
      const math::Moments whole = math::moments_of(all, replicas_, math::moments_size(channels), channels, c);
      const math::Normalizer n =
          math::normalizer_of(whole.mean, math::variance_of(whole), spec_.epsilon,
                              args.gamma ? args.gamma[c] : 1.0f, args.beta ? args.beta[c] : 0.0f);
      args.mean[c] = n.mean;
      args.variance[c] = n.variance;
      kept.scale[c] = n.scale;
      kept.shift[c] = n.shift;
      kept.inverse[c] = n.inverse;
      kept.residual[c] = n.residual;
      *kept.rows = whole.count;
    }
    share([&](int64_t begin, int64_t end, int) {
      kernels_.normalize_channels(layout_, {args.mean, kept.scale, kept.shift}, spec_.relu, f32(args.src),
                                  f32(args.dst), begin, end);
    });
  }

  void gradient_sums(const BackwardArguments& args, double* mine) override {
    const Kept kept = kept_in(args.saved);
    auto* const sums = static_cast<double*>(args.scratch);
    const int64_t channels = spec_.channels, size = math::gradient_sums_size(channels);
    std::fill_n(sums, threads_ * size, 0.0);
    share([&](int64_t begin, int64_t end, int thread) {
      kernels_.channel_gradient_sums(layout_, {args.mean, kept.scale, kept.shift}, spec_.relu, f32(args.src),
                                     f32(args.diff_dst), sums + thread * size, begin, end);
    });
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, product = 0;
      for (int thread = 0; thread < threads_; ++thread) {
        sum += sums[thread * size + c];
        product += sums[thread * size + channels + c];
      }
      product =
          (product - static_cast<double>(kept.residual[c]) * sum) * static_cast<double>(kept.inverse[c]);
      mine[c] = sum;
      mine[channels + c] = product;
      if (args.diff_beta) args.diff_beta[c] = static_cast<float>(sum);
      if (args.diff_gamma) args.diff_gamma[c] = static_cast<float>(product);
    }
    give_statistics(args, channels);
  }

  void backward(const BackwardArguments& args, const double* all) override {
    const Kept kept = kept_in(args.saved);
    auto* const slopes = static_cast<float*>(args.scratch);
    float* const offsets = slopes + spec_.channels;
    const int64_t channels = spec_.channels, size = math::gradient_sums_size(channels);
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, product = 0;
      for (int replica = 0; replica < replicas_; ++replica) {
        sum += all[replica * size + c];
        product += all[replica * size + channels + c];
      }
      const math::GradientLine line =
          math::gradient_line(static_cast<double>(kept.scale[c]), static_cast<double>(kept.inverse[c]),
                              static_cast<double>(kept.residual[c]), sum, product, *kept.rows);
      slopes[c] = line.slope;
      offsets[c] = line.offset;
    }
    const auto run = [&](const float* its_slopes, const float* its_offsets, int64_t begin, int64_t end) {
      kernels_.normalize_channels_backward(layout_, {args.mean, kept.scale, kept.shift}, spec_.relu,
                                           f32(args.src), f32(args.diff_dst), its_slopes, its_offsets,
                                           f32(args.diff_src), begin, end);
    };
    // Masked rows get no gradient through the statistics, so their slopes and offsets are 0.
    float* const zeros = offsets + channels;
    if (spec_.masked) std::fill_n(zeros, channels, 0.0f);
    share([&](int64_t begin, int64_t end, int) {
      if (!spec_.masked) return run(slopes, offsets, begin, end);
      each_masked_run(args.mask, begin, end, [&](bool valid, int64_t first, int64_t last) {
        valid ? run(slopes, offsets, first, last) : run(zeros, zeros, first, last);
      });
    });
  }

 private:
  /// Values that the forward pass saves for the backward pass (math::Normalizer).
  struct Kept {
    double* rows;
    float *scale, *shift, *inverse, *residual;
  };
  Kept kept_in(const void* saved) const {
    auto* const rows = static_cast<double*>(const_cast<void*>(saved));
    auto* const floats = reinterpret_cast<float*>(rows + 1);
    const int64_t channels = spec_.channels;
    return {rows, floats, floats + channels, floats + 2 * channels, floats + 3 * channels};
  }

  /// Calls use(valid, first, last) for every run of rows in [begin, end) with the same mask.
  template <class Use>
  static void each_masked_run(const uint8_t* mask, int64_t begin, int64_t end, Use&& use) {
    while (begin < end) {
      int64_t last = begin + 1;
      while (last < end && (mask[last] != 0) == (mask[begin] != 0)) ++last;
      use(mask[begin] != 0, begin, last);
      begin = last;
    }
  }

  /// Adds the moments of further rows to `all`.
  void add_moments(double* all, const double* more) const {
    const int64_t channels = spec_.channels;
    math::Moments sum;
    for (int64_t c = 0; c < channels; ++c) {
      sum = {all[0], all[1 + c], all[1 + channels + c]};
      sum.add({more[0], more[1 + c], more[1 + channels + c]});
      all[1 + c] = sum.mean;
      all[1 + channels + c] = sum.squares;
    }
    all[0] = sum.count;
  }

  int64_t pixels() const { return spec_.batch * layout_.pixels; }
  int64_t stride() const { return 2 * math::moments_size(spec_.channels) + spec_.channels; }
  /// Calls body(begin, end, thread) on each thread's share of the pixels of all images.
  template <class Body>
  void share(Body&& body) const {
    parallel(threads_, pixels(), 1, spec_.channels, body);
  }

  const Kernels& kernels_;
  int threads_;
  BatchNormalizationSpec spec_;
  ChannelLayout layout_;
  int replicas_;
};

}  // namespace

std::unique_ptr<SynchronizedBatchNormalization> CpuOps::synchronized_batch_normalization(
    const BatchNormalizationSpec& spec, int replicas) {
  return std::make_unique<CpuSynchronizedBatchNormalization>(*this, spec, replicas);
}

}  // namespace dtrain::cpu
