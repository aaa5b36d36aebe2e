// Kernels of Adafactor for parameters with two or more axes. They compute the means of the squared gradients
// over rows and columns, and the update direction.
#include <algorithm>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/vector.h"
#include "ops/math/factored_means.h"
#include "ops/math/optimizers.h"

namespace dtrain::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
// If rows are short, a block processes several rows, which together have about this number of elements.
constexpr int64_t kElements = 8192;

/// Returns the step of the rule. Only one thread of each block computes it, because it needs a power in
/// double precision; all threads get the result.
__device__ math::Adafactor::Step begin_in_block(const math::Adafactor& rule, const FactoredArguments& args) {
  __shared__ math::Adafactor::Step begun;
  if (threadIdx.x == 0) begun = rule.begin(*args.state, args.group);
  __syncthreads();
  return begun;
}

__device__ void add_to_mean(const math::Adafactor::Step& step, double sum, int64_t n, float& mean) {
  mean = step.next_mean(mean, static_cast<float>(sum / static_cast<double>(n)));
}

/// For each row, scales the gradients, decays the weights, and updates the row's mean of squared gradients. A
/// warp processes one row at a time.
__global__ void __launch_bounds__(kThreads)
    factored_rows_kernel(math::Adafactor rule, FactoredArguments args) {
  if (args.state->gradient.skip) return;
  const math::Adafactor::Step step = begin_in_block(rule, args);
  const UpdateNumbers numbers = math::update_numbers<math::Adafactor>(*args.state, args.group);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t row = thread_index() / kWarp; row < args.matrices * args.rows; row += thread_count() / kWarp) {
    float* const weights = args.weights + row * args.columns;
    float* const gradient = args.gradient + row * args.columns;
    double sum = 0;
    for (int64_t i = lane; i < args.columns; i += kWarp) {
      weights[i] -= numbers.decay * weights[i];
      gradient[i] = math::scaled<true>(gradient[i], numbers);
      sum += step.square(gradient[i]);
    }
    sum = warp_reduce(sum, math::Add{});
    if (lane == 0) add_to_mean(step, sum, args.columns, args.row_means[row]);
  }
}

/// Sums the squared gradients of each column and updates the column's mean. A block processes 32 columns of
/// one piece of a matrix's rows. Blocks are numbered in the order matrices, pieces, groups of columns. If a
/// matrix has several pieces, the sums are written to `partials` [matrices, pieces, columns], and
/// factored_pieces_kernel() updates the means.
__global__ void __launch_bounds__(kThreads)
    factored_columns_kernel(math::Adafactor rule, FactoredArguments args, int64_t pieces, double* partials) {
  if (args.state->gradient.skip) return;
  const math::Adafactor::Step step = begin_in_block(rule, args);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t rows = args.rows, columns = args.columns, tiles = (columns + kWarp - 1) / kWarp;
  const int64_t column = int64_t{blockIdx.x} % tiles * kWarp + lane;
  const int64_t piece = int64_t{blockIdx.x} / tiles, matrix = piece / pieces;
  const int64_t rows_of_piece = (rows + pieces - 1) / pieces, first = piece % pieces * rows_of_piece,
                end = first + rows_of_piece < rows ? first + rows_of_piece : rows;
  double sum = 0;
  if (column < columns)
    for (int64_t row = first + warp; row < end; row += kWarps)
      sum += step.square(args.gradient[(matrix * rows + row) * columns + column]);
  __shared__ double sums[kWarps][kWarp];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= columns) return;
  for (int other = 1; other < kWarps; ++other) sum += sums[other][lane];
  if (pieces > 1)
    partials[piece * columns + column] = sum;
  else
    add_to_mean(step, sum, rows, args.column_means[matrix * columns + column]);
}

/// Adds the sums of the pieces of each column and updates the column's mean. A thread processes whole
/// columns.
__global__ void __launch_bounds__(kThreads)
    factored_pieces_kernel(math::Adafactor rule, FactoredArguments args, int64_t pieces,
                           const double* partials) {
  if (args.state->gradient.skip) return;
  const math::Adafactor::Step step = begin_in_block(rule, args);
  for (int64_t i = thread_index(); i < args.matrices * args.columns; i += thread_count()) {
    const double* const first = partials + i / args.columns * pieces * args.columns + i % args.columns;
    double sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) sum += first[piece * args.columns];
    add_to_mean(step, sum, args.rows, args.column_means[i]);
  }
}

/// Replaces gradients by the update direction (math::factored_direction). A block processes `rows_of_block`
/// rows of a matrix, and each warp one row at a time.
__global__ void __launch_bounds__(kThreads)
    factored_direction_kernel(FactoredArguments args, int64_t rows_of_block) {
  if (args.state->gradient.skip) return;
  const int64_t rows = args.rows, columns = args.columns, blocks = (rows + rows_of_block - 1) / rows_of_block;
  const int64_t matrix = int64_t{blockIdx.x} / blocks, first = int64_t{blockIdx.x} % blocks * rows_of_block,
                end = first + rows_of_block < rows ? first + rows_of_block : rows;
  const float* const row_means = args.row_means + matrix * rows;
  const float* const column_means = args.column_means + matrix * columns;
  const math::Means means = math::fewer_means(row_means, rows, column_means, columns);
  double sum = 0;
  for (int64_t i = threadIdx.x; i < means.n; i += kThreads) sum += static_cast<double>(means.values[i]);
  const double mean = block_reduce(sum, math::Add{}) / static_cast<double>(means.n);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int64_t row = first + warp; row < end; row += kWarps) {
    const float factor = math::row_factor(mean, row_means[row]);
    float* const gradient = args.gradient + (matrix * rows + row) * columns;
    for (int64_t i = lane; i < columns; i += kWarp)
      gradient[i] = math::factored_direction(gradient[i], factor, column_means[i]);
  }
}

/// Returns the number of pieces into which the rows of a matrix are divided for the sums of columns. The
/// number does not depend on the GPU, so that replicas on different GPUs have the same parameters.
int64_t pieces_of(const FactoredArguments& args, int64_t most_partials) {
  constexpr int64_t kBlocks = 256, kLeastRows = 64;
  const int64_t tiles = args.matrices * ((args.columns + kWarp - 1) / kWarp);
  return std::max<int64_t>(
      std::min({kBlocks / tiles, args.rows / kLeastRows, most_partials / (args.matrices * args.columns)}), 1);
}

}  // namespace

void CudaOps::find_factored_direction(const math::Adafactor& rule, const FactoredArguments& args) {
  if (args.matrices * args.rows * args.columns == 0) return;
  launch(factored_rows_kernel,
         blocks_for(args.matrices * args.rows * kWarp, kThreads, context_.multiprocessors()), kThreads,
         stream(), rule, args);
  const int64_t tiles = (args.columns + kWarp - 1) / kWarp, pieces = pieces_of(args, kPartials);
  launch(factored_columns_kernel, static_cast<unsigned>(args.matrices * pieces * tiles), kThreads, stream(),
         rule, args, pieces, partials());
  if (pieces > 1)
    launch(factored_pieces_kernel,
           blocks_for(args.matrices * args.columns, kThreads, context_.multiprocessors()), kThreads, stream(),
           rule, args, pieces, partials());
  const int64_t rows_of_block = std::max<int64_t>(kElements / args.columns, 1),
                blocks = (args.rows + rows_of_block - 1) / rows_of_block;
  launch(factored_direction_kernel, static_cast<unsigned>(args.matrices * blocks), kThreads, stream(), args,
         rows_of_block);
}

}  // namespace dtrain::cuda
