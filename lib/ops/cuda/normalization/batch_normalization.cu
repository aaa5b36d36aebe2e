// Batch normalization of NHWC images, or rows.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/normalization/batch_normalization_kernels.h"
#include "ops/cuda/normalization/masked_statistics.h"

namespace dtrain::cuda {
namespace {

/// Code shared by plain and synchronized batch normalization: tilings, buffer layouts, and passes over all
/// elements.
template <class T>
class Passes {
 public:
  /// `arrived` has kMostArrivals counters for finish_if_last().
  Passes(const CudaContext& context, unsigned* arrived, const BatchNormalizationSpec& spec)
      : context_(context),
        arrived_(arrived),
        spec_(spec),
        by_one_(tiling(1)),
        by_vectors_(tiling(kVector<T>)) {}

  /// Returns the size of the partial sums and a Line.
  size_t scratch_bytes() const {
    return partials_bytes() + 2 * static_cast<size_t>(spec_.channels) * sizeof(float);
  }
  size_t kept_bytes() const { return 3 * static_cast<size_t>(spec_.channels) * sizeof(float); }
  Kept kept_in(void* saved) const {
    auto* const scale = static_cast<float*>(saved);
    return {scale, scale + spec_.channels, scale + 2 * spec_.channels};
  }
  Line line_in(void* scratch) const {
    float* const slope = reinterpret_cast<float*>(static_cast<char*>(scratch) + partials_bytes());
    return {slope, slope + spec_.channels};
  }
  Normalization normalization_of(const BatchNormalization::TrainingArguments& args, const Kept& kept) const {
    return {args.gamma, args.beta, spec_.epsilon, args.mean, args.variance, kept};
  }
  BackwardArrays<T> arrays_of(const BatchNormalization::BackwardArguments& args) const {
    return {static_cast<const T*>(args.src),
            static_cast<const T*>(args.diff_dst),
            args.mean,
            args.variance,
            spec_.epsilon,
            kept_in(const_cast<void*>(args.saved))};
  }

  /// Computes the statistics of src. If `mine` is null, writes them to the arrays of `args` and to `kept`.
  /// Otherwise, writes only this replica's moments to `mine`.
  void find_statistics(const BatchNormalization::TrainingArguments& args, const Kept& kept,
                       double* mine) const {
    const auto* x = static_cast<const T*>(args.src);
    auto* partials = static_cast<double*>(args.scratch);
    with_tiling(all_aligned(x), [&](auto width, const Tiling& tiling) {
      const FinishStatistics<T> finish{tiling.rows, tiling.channels, x, normalization_of(args, kept), mine};
      launch_sums(tiling, partials, arrived_, finish, stream(), [&](unsigned* arrived) {
        launch(statistics_kernel<decltype(width)::value, T>, tiling.grid(), kTileThreads, stream(), tiling, x,
               partials, arrived, finish);
      });
    });
  }
  void normalize(const BatchNormalization::InferenceArguments& args, const float* scale) const {
    const auto *x = static_cast<const T*>(args.src), *addend = static_cast<const T*>(args.addend);
    auto* y = static_cast<T*>(args.dst);
    const Channels channels{args.mean, scale, args.gamma, args.variance, args.beta, spec_.epsilon};
    with_tiling(all_aligned(x, addend, y), [&](auto width, const Tiling& tiling) {
      constexpr int N = decltype(width)::value;
      launch(spec_.adds ? normalize_kernel<N, true, T> : normalize_kernel<N, false, T>, tiling.grid(),
             kTileThreads, stream(), tiling, x, addend, channels, spec_.relu, y);
    });
  }
  /// Normalizes with the results of find_statistics().
  void normalize(const BatchNormalization::TrainingArguments& args, const Kept& kept) const {
    normalize({args.src, args.gamma, kept.shift, args.mean, args.variance, args.dst, nullptr, args.addend},
              kept.scale);
  }
  /// Computes the gradients of gamma and beta. If `mine` is null, also computes the Line. Otherwise, writes
  /// this replica's gradient sums to `mine`.
  void sum_gradients(const BatchNormalization::BackwardArguments& args, const BackwardArrays<T>& arrays,
                     double* mine) const {
    auto* partials = static_cast<double*>(args.scratch);
    const ParameterGradients to{args.diff_gamma, args.diff_beta, args.diff_mean, args.diff_variance,
                                args.share};
    with_tiling(all_aligned(arrays.src, arrays.diff_dst), [&](auto width, const Tiling& tiling) {
      constexpr int N = decltype(width)::value;
      const FinishGradients<T> finish{tiling.rows, tiling.channels, arrays, to, line_in(args.scratch), mine};
      launch_sums(tiling, partials, arrived_, finish, stream(), [&](unsigned* arrived) {
        launch(undoes_relu() ? gradient_sums_kernel<N, true, T> : gradient_sums_kernel<N, false, T>,
               tiling.grid(), kTileThreads, stream(), tiling, partials, arrived, finish);
      });
    });
  }
  /// Computes the gradient of src. `mask` is null unless forward had a mask.
  void write_gradient(const BackwardArrays<T>& arrays, const Line& line, const uint8_t* mask,
                      T* diff_src) const {
    with_tiling(all_aligned(arrays.src, arrays.diff_dst, diff_src), [&](auto width, const Tiling& tiling) {
      constexpr int N = decltype(width)::value;
      const auto enqueue = [&](auto kernel) {
        launch(kernel, tiling.grid(), kTileThreads, stream(), tiling, arrays, line, mask, diff_src);
      };
      if (mask)
        enqueue(undoes_relu() ? diff_src_kernel<N, true, true, T> : diff_src_kernel<N, false, true, T>);
      else
        enqueue(undoes_relu() ? diff_src_kernel<N, true, false, T> : diff_src_kernel<N, false, false, T>);
    });
  }

  /// Writes the moments of the rows that are not masked.
  void find_masked_moments(const BatchNormalization::TrainingArguments& args, double* mine) const {
    launch(count_rows_kernel, 1, kCountThreads, stream(), rows(), args.mask, mine);
    const auto* x = static_cast<const T*>(args.src);
    auto* partials = static_cast<double*>(args.scratch);
    with_tiling(all_aligned(x), [&](auto width, const Tiling& tiling) {
      const FinishMaskedStatistics finish{tiling.channels, mine};
      launch_sums(tiling, partials, arrived_, finish, stream(), [&](unsigned* arrived) {
        launch(masked_statistics_kernel<decltype(width)::value, T>, tiling.grid(), kTileThreads, stream(),
               tiling, x, args.mask, partials, arrived, finish);
      });
    });
  }

  cudaStream_t stream() const { return context_.compute(); }
  /// Returns the number of blocks for one thread per channel.
  unsigned channel_blocks() const {
    return static_cast<unsigned>((spec_.channels + kTileThreads - 1) / kTileThreads);
  }

 private:
  bool undoes_relu() const { return spec_.relu && !spec_.adds; }
  int64_t rows() const { return spec_.batch * spec_.height * spec_.width; }
  /// Calls use(N, tiling), where N is the number of channels per thread. N is greater than 1 if vector
  /// accesses are possible.
  template <class Use>
  void with_tiling(bool aligned, const Use& use) const {
    with_width<T>(aligned && spec_.channels % kVector<T> == 0,
                  [&](auto width) { use(width, decltype(width)::value == 1 ? by_one_ : by_vectors_); });
  }
  Tiling tiling(int N) const { return tiling_of(rows(), spec_.channels, N, context_.multiprocessors()); }
  size_t partials_bytes() const {
    return 2 * sizeof(double) * static_cast<size_t>(spec_.channels) *
           std::max(by_one_.row_blocks, by_vectors_.row_blocks);
  }

  const CudaContext& context_;
  unsigned* arrived_;
  BatchNormalizationSpec spec_;
  // by_one_ is the tiling for one channel per thread. by_vectors_ is the tiling for one vector access per
  // thread.
  Tiling by_one_, by_vectors_;
};

template <class T>
class CudaBatchNormalization final : public BatchNormalization {
 public:
  explicit CudaBatchNormalization(const Passes<T>& passes) : passes_(passes) {}

  size_t scratch_bytes() const override { return passes_.scratch_bytes(); }
  size_t saved_bytes() const override { return passes_.kept_bytes(); }

  void forward_training(const TrainingArguments& args) override {
    const Kept kept = passes_.kept_in(args.saved);
    passes_.find_statistics(args, kept, nullptr);
    passes_.normalize(args, kept);
  }

  void forward_inference(const InferenceArguments& args) override { passes_.normalize(args, nullptr); }

  void backward(const BackwardArguments& args) override {
    const BackwardArrays<T> arrays = passes_.arrays_of(args);
    passes_.sum_gradients(args, arrays, nullptr);
    passes_.write_gradient(arrays, passes_.line_in(args.scratch), nullptr, static_cast<T*>(args.diff_src));
  }

 private:
  Passes<T> passes_;
};

template <class T>
class CudaSynchronizedBatchNormalization final : public SynchronizedBatchNormalization {
 public:
  CudaSynchronizedBatchNormalization(const Passes<T>& passes, int64_t channels, int replicas)
      : passes_(passes), channels_(channels), replicas_(replicas) {}

  size_t scratch_bytes() const override { return passes_.scratch_bytes(); }
  /// Returns the size of the values that forward saves: the number of rows of all replicas as a double,
  /// followed by the statistics that plain batch normalization saves.
  size_t saved_bytes() const override { return sizeof(double) + passes_.kept_bytes(); }

  void moments(const TrainingArguments& args, double* mine) override {
    if (args.mask) return passes_.find_masked_moments(args, mine);
    passes_.find_statistics(args, {}, mine);
  }

  void forward(const TrainingArguments& args, const double* all) override {
    auto* const rows = static_cast<double*>(args.saved);
    const Kept kept = passes_.kept_in(rows + 1);
    launch(join_moments_kernel, passes_.channel_blocks(), kTileThreads, passes_.stream(), channels_,
           replicas_, all, passes_.normalization_of(args, kept), rows);
    passes_.normalize(args, kept);
  }

  void gradient_sums(const BackwardArguments& args, double* mine) override {
    passes_.sum_gradients(args, arrays_of(args), mine);
  }

  void backward(const BackwardArguments& args, const double* all) override {
    const BackwardArrays<T> arrays = arrays_of(args);
    const Line line = passes_.line_in(args.scratch);
    launch(join_gradient_sums_kernel<T>, passes_.channel_blocks(), kTileThreads, passes_.stream(), channels_,
           replicas_, all, arrays, static_cast<const double*>(args.saved), line);
    passes_.write_gradient(arrays, line, args.mask, static_cast<T*>(args.diff_src));
  }

 private:
  BackwardArrays<T> arrays_of(const BackwardArguments& args) const {
    BackwardArrays<T> arrays = passes_.arrays_of(args);
    arrays.kept = passes_.kept_in(static_cast<double*>(const_cast<void*>(args.saved)) + 1);
    return arrays;
  }

  Passes<T> passes_;
  int64_t channels_;
  int replicas_;
};

}  // namespace

std::unique_ptr<BatchNormalization> CudaOps::batch_normalization(const BatchNormalizationSpec& spec) {
  static_assert(kMostArrivals <= kArrivals);
  std::unique_ptr<BatchNormalization> normalization;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    normalization = std::make_unique<CudaBatchNormalization<T>>(Passes<T>(context_, arrived(), spec));
  });
  return normalization;
}

std::unique_ptr<SynchronizedBatchNormalization> CudaOps::synchronized_batch_normalization(
    const BatchNormalizationSpec& spec, int replicas) {
  std::unique_ptr<SynchronizedBatchNormalization> normalization;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    normalization = std::make_unique<CudaSynchronizedBatchNormalization<T>>(
        Passes<T>(context_, arrived(), spec), spec.channels, replicas);
  });
  return normalization;
}

}  // namespace dtrain::cuda
