#include <cstring>
#include <limits>

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {
namespace {

/// A thread's share of columns is worth having from here on; fewer columns are summed by shares of the rows.
constexpr int64_t kColumnsPerThread = 64;

void copy_floats(float* dst, const float* src, int64_t n) {
  if (n > 0) std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

void zero_floats(float* dst, int64_t n) {
  if (n > 0) std::memset(dst, 0, static_cast<size_t>(n) * sizeof(float));
}

/// Rows of one image, padded and not, in floats.
struct Rows {
  int64_t width, left, right;
  int64_t padded_width() const { return left + width + right; }
};

}  // namespace

CpuOps::CpuOps(Context& context, const Kernels& kernels)
    : context_(context),
      kernels_(kernels),
      threads_(context.threads()),
      partials_(static_cast<size_t>(threads_)),
      column_partials_(static_cast<size_t>(threads_ * threads_ * kColumnsPerThread)) {}

void CpuOps::add_bias(float* dst, const float* src, const float* bias, int64_t rows, int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.bias_activation(dst, src, bias, ActivationSpec{}, columns, begin, end);
  });
}

void CpuOps::column_sum(float* dst, const float* src, int64_t rows, int64_t columns) {
  if (columns >= threads_ * kColumnsPerThread || rows < threads_) {
    parallel(threads_, columns, 16, rows, [&](int64_t begin, int64_t end, int) {
      kernels_.column_sum(dst, src, columns, begin, end, 0, rows);
    });
    return;
  }
  if (threads_ == 1 || rows * columns < kWorthSharing) {
    kernels_.column_sum(dst, src, columns, 0, columns, 0, rows);
    return;
  }
  // Partial sums, added in the threads' order.
  const int64_t stride = threads_ * kColumnsPerThread;
  parallel(threads_, rows, 1, columns, [&](int64_t begin, int64_t end, int thread) {
    kernels_.column_sum(column_partials_.data() + thread * stride, src, columns, 0, columns, begin, end);
  });
  copy_floats(dst, column_partials_.data(), columns);
  for (int thread = 1; thread < threads_; ++thread) {
    const float* partial = column_partials_.data() + thread * stride;
    for (int64_t c = 0; c < columns; ++c) dst[c] += partial[c];
  }
}

void CpuOps::softmax_forward(const float* src, float* dst, int64_t rows, int64_t columns) {
  each_row(rows, columns,
           [&](int64_t begin, int64_t end) { kernels_.softmax_forward(src, dst, columns, begin, end); });
}

void CpuOps::softmax_backward(const float* dst, const float* diff_dst, float* diff_src, int64_t rows,
                              int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.softmax_backward(dst, diff_dst, diff_src, columns, begin, end);
  });
}

void CpuOps::layer_normalization_forward(const float* src, const float* gamma, const float* beta,
                                         float epsilon, float* dst, float* mean, float* inverse_deviation,
                                         int64_t rows, int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.layer_normalization_forward(src, gamma, beta, epsilon, dst, mean, inverse_deviation, columns,
                                         begin, end);
  });
}

void CpuOps::layer_normalization_backward(const float* src, const float* gamma, const float* mean,
                                          const float* inverse_deviation, const float* diff_dst,
                                          float* diff_src, float* diff_gamma, float* diff_beta, int64_t rows,
                                          int64_t columns) {
  // The parameters' gradients first, as diff_src may be diff_dst.
  if (diff_beta) column_sum(diff_beta, diff_dst, rows, columns);
  if (diff_gamma) {
    parallel(threads_, columns, 16, rows, [&](int64_t begin, int64_t end, int) {
      kernels_.layer_normalization_scale(src, mean, inverse_deviation, diff_dst, diff_gamma, rows, columns,
                                         begin, end);
    });
  }
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.layer_normalization_backward(src, gamma, mean, inverse_deviation, diff_dst, diff_src, columns,
                                          begin, end);
  });
}

void CpuOps::copy_block(float* dst, int64_t dst_stride, const float* src, int64_t src_stride, int64_t rows,
                        int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) copy_floats(dst + r * dst_stride, src + r * src_stride, columns);
  });
}

void CpuOps::pad_images(const Padding2& padding, const float* src, float* padded, const Shape& src_shape) {
  const int64_t height = src_shape[1], channels = src_shape[3];
  const Rows row{src_shape[2] * channels, padding.left * channels, padding.right * channels};
  const int64_t padded_height = padding.top + height + padding.bottom;
  each_row(src_shape[0] * padded_height, row.padded_width(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t image = r / padded_height, y = r % padded_height - padding.top;
      float* dst = padded + r * row.padded_width();
      if (y < 0 || y >= height) {
        zero_floats(dst, row.padded_width());
        continue;
      }
      zero_floats(dst, row.left);
      copy_floats(dst + row.left, src + (image * height + y) * row.width, row.width);
      zero_floats(dst + row.left + row.width, row.right);
    }
  });
}

void CpuOps::crop_images(const Padding2& padding, const float* padded, float* dst, const Shape& dst_shape) {
  const int64_t height = dst_shape[1], channels = dst_shape[3];
  const Rows row{dst_shape[2] * channels, padding.left * channels, padding.right * channels};
  const int64_t padded_height = padding.top + height + padding.bottom;
  each_row(dst_shape[0] * height, row.width, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t from = r / height * padded_height + padding.top + r % height;
      copy_floats(dst + r * row.width, padded + from * row.padded_width() + row.left, row.width);
    }
  });
}

void CpuOps::embedding_forward(const float* table, const int32_t* indices, float* dst, int64_t n,
                               int64_t table_rows, int64_t columns) {
  each_row(n, columns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool known = indices[i] >= 0 && indices[i] < table_rows;
      if (known) {
        copy_floats(dst + i * columns, table + indices[i] * columns, columns);
      } else {
        kernels_.fill(dst + i * columns, std::numeric_limits<float>::quiet_NaN(), 0, columns);
      }
    }
  });
}

void CpuOps::embedding_backward(const int32_t* indices, const float* diff_dst, float* diff_table, int64_t n,
                                int64_t table_rows, int64_t columns) {
  // Shares of the columns: each table element is summed by one thread, in the order of the indices.
  parallel(threads_, columns, 16, n + table_rows, [&](int64_t begin, int64_t end, int) {
    kernels_.embedding_backward(indices, diff_dst, diff_table, n, table_rows, columns, begin, end);
  });
}

}  // namespace dtrain::cpu
