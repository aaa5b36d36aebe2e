// Kernels that process rows or columns of matrices. Part of kernels/all.h.
#pragma once

#include "ops/cpu/kernels/table.h"
#include "ops/math/activations.h"

namespace dtrain::cpu {
namespace {

void bias_activation(float* dst, const float* src, const float* bias, const ActivationSpec& spec,
                     int64_t columns, int64_t begin, int64_t end) {
  math::with_activation(spec, [&](auto activation) {
    if (!bias || columns == 1) {
      const float all = bias ? bias[0] : 0.0f;
#pragma omp simd
      for (int64_t i = begin * columns; i < end * columns; ++i) dst[i] = activation.forward(src[i] + all);
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      const float* in = src + r * columns;
      float* out = dst + r * columns;
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) out[c] = activation.forward(in[c] + bias[c]);
    }
  });
}

float row_max(const float* row, int64_t n) {
  constexpr int kLanes = 16;
  float result = row[0];
  int64_t c = 0;
  if (n >= kLanes) {
    float lanes[kLanes];
    for (int l = 0; l < kLanes; ++l) lanes[l] = row[l];
    for (c = kLanes; c + kLanes <= n; c += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] = row[c + l] > lanes[l] ? row[c + l] : lanes[l];
    }
    for (int l = 0; l < kLanes; ++l) result = lanes[l] > result ? lanes[l] : result;
  }
  for (; c < n; ++c) result = row[c] > result ? row[c] : result;
  return result;
}

/// Writes dst = exp(src - most) and returns its sum.
float shifted_exponentials(const float* src, float most, float* dst, int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (int64_t c = 0; c < n; ++c) {
    const float e = math::exp(src[c] - most);
    dst[c] = e;
    total += e;
  }
  return total;
}

void softmax_forward(const float* src, float* dst, int64_t columns, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* in = src + r * columns;
    float* out = dst + r * columns;
    const float factor = 1.0f / shifted_exponentials(in, row_max(in, columns), out, columns);
    for (int64_t c = 0; c < columns; ++c) out[c] *= factor;
  }
}

void convert_row(const GatherSpec& spec, const void* src, float* dst) {
  const auto from = [&](const auto* row) {
    for (int64_t i = 0; i < spec.row_elements; ++i) {
      const int64_t at = spec.scale_elements == 1 ? 0 : i;
      const float x = static_cast<float>(row[i]);
      dst[i] = spec.scale ? spec.scale[at] * x + spec.offset[at] : x;
    }
  };
  if (spec.from == DType::uint8) return from(static_cast<const uint8_t*>(src));
  if (spec.from == DType::int32) return from(static_cast<const int32_t*>(src));
  from(static_cast<const float*>(src));
}

void softmax_backward(const float* dst, const float* diff_dst, float* diff_src, int64_t columns,
                      int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float *y = dst + r * columns, *dy = diff_dst + r * columns;
    float* dx = diff_src + r * columns;
    float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
    for (int64_t c = 0; c < columns; ++c) dot += y[c] * dy[c];
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) dx[c] = y[c] * (dy[c] - dot);
  }
}

void layer_normalization_forward(const float* src, const float* gamma, const float* beta, float epsilon,
                                 float* dst, float* mean, float* inverse_deviation, int64_t columns,
                                 int64_t begin, int64_t end) {
  const float share = 1.0f / static_cast<float>(columns);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = src + r * columns;
    float* y = dst + r * columns;
    float total = 0.0f;
#pragma omp simd reduction(+ : total)
    for (int64_t c = 0; c < columns; ++c) total += x[c];
    const float m = total * share;
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < columns; ++c) squares += (x[c] - m) * (x[c] - m);
    const float inverse = 1.0f / ::sqrtf(squares * share + epsilon);
    mean[r] = m;
    inverse_deviation[r] = inverse;
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) {
      y[c] = (x[c] - m) * inverse * (gamma ? gamma[c] : 1.0f) + (beta ? beta[c] : 0.0f);
    }
  }
}

void layer_normalization_backward(const float* src, const float* gamma, const float* mean,
                                  const float* inverse_deviation, const float* diff_dst, float* diff_src,
                                  int64_t columns, int64_t begin, int64_t end) {
  const float share = 1.0f / static_cast<float>(columns);
  for (int64_t r = begin; r < end; ++r) {
    const float *x = src + r * columns, *dy = diff_dst + r * columns;
    float* dx = diff_src + r * columns;
    const float m = mean[r], inverse = inverse_deviation[r];
    float total = 0.0f, dot = 0.0f;
#pragma omp simd reduction(+ : total, dot)
    for (int64_t c = 0; c < columns; ++c) {
      const float g = dy[c] * (gamma ? gamma[c] : 1.0f);
      total += g;
      dot += g * (x[c] - m);
    }
    total *= share;
    dot *= share * inverse * inverse;
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) {
      const float g = dy[c] * (gamma ? gamma[c] : 1.0f);
      dx[c] = inverse * (g - total - (x[c] - m) * dot);
    }
  }
}

void layer_normalization_scale(const float* src, const float* mean, const float* inverse_deviation,
                               const float* diff_dst, float* diff_gamma, int64_t rows, int64_t columns,
                               int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) diff_gamma[c] = 0.0f;
  for (int64_t r = 0; r < rows; ++r) {
    const float *x = src + r * columns, *dy = diff_dst + r * columns;
    const float m = mean[r], inverse = inverse_deviation[r];
#pragma omp simd
    for (int64_t c = begin; c < end; ++c) diff_gamma[c] += dy[c] * (x[c] - m) * inverse;
  }
}

void rescale(float* dst, const float* src, const float* scale, const float* offset, int64_t columns,
             int64_t begin, int64_t end) {
  if (columns == 1) {
    const float factor = scale[0], addend = offset[0];
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) dst[i] = src[i] * factor + addend;
    return;
  }
  for (int64_t r = begin; r < end; ++r) {
    const float* in = src + r * columns;
    float* out = dst + r * columns;
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) out[c] = in[c] * scale[c] + offset[c];
  }
}

void rms_normalization_forward(const float* src, const float* scale, const math::InverseNorm& norm,
                               float* dst, float* inverse, int64_t columns, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* x = src + r * columns;
    float* y = dst + r * columns;
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < columns; ++c) squares += x[c] * x[c];
    const float factor = norm(squares);
    inverse[r] = factor;
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) y[c] = x[c] * factor * (scale ? scale[c] : 1.0f);
  }
}

void rms_normalization_backward(const float* src, const float* scale, const math::InverseNorm& norm,
                                const float* inverse, const float* diff_dst, float* diff_src, int64_t columns,
                                int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float *x = src + r * columns, *dy = diff_dst + r * columns;
    float* dx = diff_src + r * columns;
    float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
    for (int64_t c = 0; c < columns; ++c) dot += dy[c] * (scale ? scale[c] : 1.0f) * x[c];
    const float factor = inverse[r], slope = norm.slope(factor, dot);
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) dx[c] = dy[c] * (scale ? scale[c] : 1.0f) * factor - x[c] * slope;
  }
}

void rms_normalization_scale(const float* src, const float* inverse, const float* diff_dst, float* diff_scale,
                             int64_t rows, int64_t columns, int64_t begin, int64_t end) {
  constexpr int64_t kChannels = 64;
  for (int64_t first = begin; first < end; first += kChannels) {
    const int64_t n = end - first < kChannels ? end - first : kChannels;
    alignas(64) double sums[kChannels] = {};
    for (int64_t r = 0; r < rows; ++r) {
      const float *x = src + r * columns + first, *dy = diff_dst + r * columns + first;
      const float factor = inverse[r];
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) sums[c] += static_cast<double>(dy[c] * x[c] * factor);
    }
    for (int64_t c = 0; c < n; ++c) diff_scale[first + c] = static_cast<float>(sums[c]);
  }
}

/// Sums an array with a single column, whose elements are contiguous.
float single_column_sum(const float* src, int64_t begin, int64_t end) {
  double total = 0.0;
#pragma omp simd reduction(+ : total)
  for (int64_t r = begin; r < end; ++r) total += static_cast<double>(src[r]);
  return static_cast<float>(total);
}

void column_sum(float* dst, const float* src, int64_t columns, int64_t first, int64_t last, int64_t begin,
                int64_t end) {
  if (columns == 1) {
    dst[0] = single_column_sum(src, begin, end);
    return;
  }
  for (int64_t c = first; c < last; ++c) dst[c] = 0.0f;
  int64_t r = begin;
  for (; r + 8 <= end; r += 8) {  // eight rows per pass over dst
    const float* s = src + r * columns;
#pragma omp simd
    for (int64_t c = first; c < last; ++c) {
      dst[c] += ((s[c] + s[c + columns]) + (s[c + 2 * columns] + s[c + 3 * columns])) +
                ((s[c + 4 * columns] + s[c + 5 * columns]) + (s[c + 6 * columns] + s[c + 7 * columns]));
    }
  }
  for (; r < end; ++r) {
    const float* s = src + r * columns;
#pragma omp simd
    for (int64_t c = first; c < last; ++c) dst[c] += s[c];
  }
}

void embedding_backward(const int32_t* indices, const float* diff_dst, float* diff_table, int64_t n,
                        int64_t table_rows, int64_t columns, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < table_rows; ++row) {
    for (int64_t c = begin; c < end; ++c) diff_table[row * columns + c] = 0.0f;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (indices[i] < 0 || indices[i] >= table_rows) continue;
    float* dst = diff_table + indices[i] * columns;
    const float* src = diff_dst + i * columns;
#pragma omp simd
    for (int64_t c = begin; c < end; ++c) dst[c] += src[c];
  }
}

}  // namespace
}  // namespace dtrain::cpu
