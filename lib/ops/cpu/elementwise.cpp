#include <array>
#include <cstring>

#include "ops/cpu/cpu_ops.h"
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

void CpuOps::apply_directions(std::span<const ParameterPart> parts, const double* squares,
                              const UpdateArguments& args) {
  UpdateArguments part = args;
  for (const auto& [n, factor] : parts) {
    part.group = {.learning_rate_factor = factor};
    part.n = n;
    update(math::TrustRatio{squares}, part);
    squares += 2;
    part.weights += n;
    part.gradient += n;
  }
}

}  // namespace dtrain::cpu
