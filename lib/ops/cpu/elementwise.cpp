#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "ops/cpu/cpu_ops.h"
#include "ops/math/factored_means.h"
#include "ops/math/gradient_scale.h"
#include "ops/math/pairwise.h"

namespace dtrain::cpu {

void CpuOps::fill(float* dst, float value, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) { kernels_.fill(dst, value, begin, end); });
}

void CpuOps::copy(void* dst, const void* src, int64_t n) {
  if (dst == src) return;
  each(n, [&](int64_t begin, int64_t end) {
    if (begin < end)
      std::memcpy(f32(dst) + begin, f32(src) + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

void CpuOps::cast(void* dst, DType to, const void* src, DType from, int64_t n) {
  const size_t size = bytes_of(from);
  if (from != to) check_converts(from, to);
  each(n, [&](int64_t begin, int64_t end) {
    if (begin >= end) return;
    const auto* first = static_cast<const char*>(src) + static_cast<size_t>(begin) * size;
    if (from == to) {
      std::memcpy(static_cast<char*>(dst) + static_cast<size_t>(begin) * size, first,
                  static_cast<size_t>(end - begin) * size);
    } else {
      kernels_.convert_row({.from = from, .row_elements = end - begin}, first, f32(dst) + begin);
    }
  });
}

void CpuOps::scale_add(float* dst, const float* src, float alpha, float beta, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) { kernels_.scale_add(dst, src, alpha, beta, begin, end); });
}

void CpuOps::sum(void* dst, std::span<const void* const> srcs, const ActivationSpec& activation, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) {
    kernels_.sum(f32(dst), srcs.data(), srcs.size(), activation, begin, end);
  });
}

void CpuOps::multiply(void* dst, std::span<const void* const> srcs, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) {
    kernels_.multiply(f32(dst), srcs.data(), srcs.size(), begin, end);
  });
}

void CpuOps::activation_forward(const ActivationSpec& spec, const void* src, void* dst, int64_t n) {
  sum(dst, {&src, 1}, spec, n);
}

void CpuOps::activation_backward(const ActivationSpec& spec, const void* saved, const void* diff_dst,
                                 void* diff_src, int64_t n) {
  sum_backward(spec, saved, {&diff_dst, 1}, diff_src, n);
}

void CpuOps::sum_backward(const ActivationSpec& spec, const void* saved,
                          std::span<const void* const> diff_dsts, void* diff_src, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) {
    kernels_.sum_backward(spec, f32(saved), diff_dsts.data(), diff_dsts.size(), f32(diff_src), begin, end);
  });
}

void CpuOps::dropout(void* dst, const void* src, float rate, const Philox& random, const uint64_t* step,
                     uint64_t first_sample, int64_t samples, int64_t per_sample) {
  const int64_t blocks = samples * ((per_sample + 3) / 4);
  parallel(threads_, blocks, 4, 4, [&](int64_t begin, int64_t end, int) {
    kernels_.dropout(f32(dst), f32(src), rate, random, *step, first_sample, per_sample, begin, end);
  });
}

void CpuOps::spatial_dropout(void* dst, const void* src, float rate, const Philox& random,
                             const uint64_t* step, uint64_t first_sample, int64_t samples, int64_t pixels,
                             int64_t channels) {
  each_row(samples * pixels, channels, [&](int64_t begin, int64_t end) {
    kernels_.spatial_dropout(f32(dst), f32(src), rate, random, *step, first_sample, pixels, channels, begin,
                             end);
  });
}

void CpuOps::gaussian_noise(void* dst, const void* src, const NoiseSpec& noise, const Philox& random,
                            const uint64_t* step, uint64_t first_sample, int64_t samples,
                            int64_t per_sample) {
  const int64_t blocks = samples * ((per_sample + 3) / 4);
  parallel(threads_, blocks, 4, 4, [&](int64_t begin, int64_t end, int) {
    kernels_.gaussian_noise(f32(dst), f32(src), noise, random, *step, first_sample, per_sample, begin, end);
  });
}

void CpuOps::sums_of_squares(std::span<const std::span<const float>> arrays, double* squares) {
  for (const std::span<const float> array : arrays) {
    const auto n = static_cast<int64_t>(array.size());
    const int64_t piece = math::squares_piece(n, 4096), pieces = (n + piece - 1) / piece;
    std::array<double, math::kMostSquaresPieces> sums;
    parallel(threads_, pieces, 1, piece, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        sums[static_cast<size_t>(i)] =
            kernels_.sum_of_squares(array.data() + i * piece, std::min(piece, n - i * piece));
    });
    *squares++ = math::pairwise_sum(sums.data(), pieces);
  }
}

void CpuOps::update_gradient_scale(const GradientRule& rule, const double* squares, const double* weights,
                                   StepState* state) {
  state->gradient = math::next_gradient_scale(rule, squares, weights, *state);
}

void CpuOps::update(const OptimizerRule& rule, const UpdateArguments& args) {
  if (args.state->gradient.skip) return;
  each(args.n, [&](int64_t begin, int64_t end) {
    kernels_.update(rule, *args.state, args.group, args.weights, args.gradient, args.slots.data(), begin,
                    end);
  });
}

/// Divides the rows into pieces, which are the same for any number of threads. Each piece has separate column
/// sums, which are added at the end.
void CpuOps::find_factored_direction(const math::Adafactor& rule, const FactoredArguments& args) {
  const int64_t rows = args.rows, columns = args.columns;
  if (args.state->gradient.skip || args.matrices * rows * columns == 0) return;
  constexpr int64_t kLeastElements = 1 << 16, kLeastRows = 8, kMostPieces = 64;
  const int64_t rows_of_piece = std::max(
      {(kLeastElements + columns - 1) / columns, kLeastRows, (rows + kMostPieces - 1) / kMostPieces});
  const int64_t pieces = (rows + rows_of_piece - 1) / rows_of_piece;
  const math::Adafactor::Step step = rule.begin(*args.state, args.group);
  const UpdateNumbers numbers = math::update_numbers<math::Adafactor>(*args.state, args.group);
  std::vector<double> sums(static_cast<size_t>(args.matrices * pieces * columns));  // sums of each piece
  parallel(threads_, args.matrices * pieces, 1, rows_of_piece * columns,
           [&](int64_t begin, int64_t end, int) {
             for (int64_t piece = begin; piece < end; ++piece) {
               const int64_t matrix = piece / pieces, first = piece % pieces * rows_of_piece;
               for (int64_t i = first; i < std::min(first + rows_of_piece, rows); ++i) {
                 const int64_t row = matrix * rows + i;
                 const double sum = kernels_.add_factored_row(step, numbers, args.weights + row * columns,
                                                              args.gradient + row * columns,
                                                              sums.data() + piece * columns, columns);
                 float& mean = args.row_means[row];
                 mean = step.next_mean(mean, static_cast<float>(sum / static_cast<double>(columns)));
               }
             }
           });
  parallel(threads_, args.matrices * columns, 16, pieces, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const double* const first = sums.data() + i / columns * pieces * columns + i % columns;
      double sum = 0;
      for (int64_t piece = 0; piece < pieces; ++piece) sum += first[piece * columns];
      float& mean = args.column_means[i];
      mean = step.next_mean(mean, static_cast<float>(sum / static_cast<double>(rows)));
    }
  });
  std::vector<double> means;  // means of each matrix
  for (int64_t matrix = 0; matrix < args.matrices; ++matrix) {
    const auto [values, n] = math::fewer_means(args.row_means + matrix * rows, rows,
                                               args.column_means + matrix * columns, columns);
    means.push_back(std::accumulate(values, values + n, 0.0) / static_cast<double>(n));
  }
  each_row(args.matrices * rows, columns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      kernels_.factored_direction(
          math::row_factor(means[static_cast<size_t>(row / rows)], args.row_means[row]),
          args.column_means + row / rows * columns, args.gradient + row * columns, columns);
  });
}

void CpuOps::apply_directions(const math::DirectionRule& rule, std::span<const ParameterPart> parts,
                              const double* squares, const UpdateArguments& args) {
  UpdateArguments part = args;
  for (const auto& [n, elements, factor] : parts) {
    part.group = {.learning_rate_factor = factor};
    part.n = n;
    update(math::DirectionStep{rule, squares, elements}, part);
    squares += 2;
    part.weights += n;
    part.gradient += n;
  }
}

}  // namespace dtrain::cpu
