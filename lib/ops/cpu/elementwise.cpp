#include <cstring>

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {

void CpuOps::fill(float* dst, float value, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) { kernels_.fill(dst, value, begin, end); });
}

void CpuOps::copy(float* dst, const float* src, int64_t n) {
  if (dst == src) return;
  each(n, [&](int64_t begin, int64_t end) {
    if (begin < end) std::memcpy(dst + begin, src + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

void CpuOps::scale_add(float* dst, const float* src, float alpha, float beta, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) { kernels_.scale_add(dst, src, alpha, beta, begin, end); });
}

void CpuOps::sum(float* dst, std::span<const float* const> srcs, const ActivationSpec& activation,
                 int64_t n) {
  each(n, [&](int64_t begin, int64_t end) {
    kernels_.sum(dst, srcs.data(), srcs.size(), activation, begin, end);
  });
}

void CpuOps::multiply(float* dst, std::span<const float* const> srcs, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) { kernels_.multiply(dst, srcs.data(), srcs.size(), begin, end); });
}

void CpuOps::activation_forward(const ActivationSpec& spec, const float* src, float* dst, int64_t n) {
  sum(dst, {&src, 1}, spec, n);
}

void CpuOps::activation_backward(const ActivationSpec& spec, const float* saved, const float* diff_dst,
                                 float* diff_src, int64_t n) {
  sum_backward(spec, saved, {&diff_dst, 1}, diff_src, n);
}

void CpuOps::sum_backward(const ActivationSpec& spec, const float* saved,
                          std::span<const float* const> diff_dsts, float* diff_src, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) {
    kernels_.sum_backward(spec, saved, diff_dsts.data(), diff_dsts.size(), diff_src, begin, end);
  });
}

void CpuOps::dropout(float* dst, const float* src, float rate, const Philox& random, uint64_t step,
                     uint64_t first_sample, int64_t samples, int64_t per_sample) {
  const int64_t blocks = samples * ((per_sample + 3) / 4);
  parallel(threads_, blocks, 4, 4, [&](int64_t begin, int64_t end, int) {
    kernels_.dropout(dst, src, rate, random, step, first_sample, per_sample, begin, end);
  });
}

double CpuOps::sum_of_squares(const float* src, int64_t n) {
  return total_of(n, 16, 1,
                  [&](int64_t begin, int64_t end) { return kernels_.sum_of_squares(src, begin, end); });
}

void CpuOps::update(const OptimizerStep& step, float* weights, const float* gradient,
                    std::span<float* const> slots, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) {
    kernels_.update(step, weights, gradient, slots.data(), begin, end);
  });
}

}  // namespace dtrain::cpu
