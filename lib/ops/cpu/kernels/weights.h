// Kernels of regularizers and constraints; kernels.inc describes their arguments.
#pragma once

#include <cstdint>

#include "ops/math/penalties.h"

namespace dtrain::cpu {
namespace {

double penalty(const PenaltySpec& spec, const float* weights, int64_t begin, int64_t end) {
  double total = 0.0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = begin; i < end; ++i) total += static_cast<double>(math::penalty(spec, weights[i]));
  return total;
}

void add_penalty_gradient(const PenaltySpec& spec, float scale, const float* weights, float* gradient,
                          int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) gradient[i] += scale * math::penalty_gradient(spec, weights[i]);
}

void remove_negatives(float* weights, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) weights[i] = math::without_negative(weights[i]);
}

void limit_norms(const ConstraintSpec& spec, float* weights, int64_t begin, int64_t end) {
  // Number of columns that are processed at a time. Their sums fit in a small array on the stack.
  constexpr int64_t kColumns = 64;
  while (begin < end) {
    const int64_t outer = begin / spec.inner, column = begin % spec.inner;
    const int64_t left = spec.inner - column < end - begin ? spec.inner - column : end - begin;
    const int64_t count = left < kColumns ? left : kColumns;
    float* const first = weights + outer * spec.extent * spec.inner + column;
    double squares[kColumns] = {};
    for (int64_t k = 0; k < spec.extent; ++k) {
      const float* const row = first + k * spec.inner;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j)
        squares[j] += static_cast<double>(row[j]) * static_cast<double>(row[j]);
    }
    float factors[kColumns];
    for (int64_t j = 0; j < count; ++j) factors[j] = math::norm_factor(spec, squares[j]);
    for (int64_t k = 0; k < spec.extent; ++k) {
      float* const row = first + k * spec.inner;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) row[j] *= factors[j];
    }
    begin += count;
  }
}

}  // namespace
}  // namespace dtrain::cpu
