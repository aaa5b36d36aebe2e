#include <cstring>
#include <limits>

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {
namespace {

void copy_floats(float* dst, const float* src, int64_t n) {
  if (n > 0) std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

void zero_floats(float* dst, int64_t n) {
  if (n > 0) std::memset(dst, 0, static_cast<size_t>(n) * sizeof(float));
}

/// Sizes, in floats, of an image row and its padding.
struct Rows {
  int64_t width, left, right;
  int64_t padded_width() const { return left + width + right; }
};

}  // namespace

CpuOps::CpuOps(Context& context, const Kernels& kernels, bool independent_rows)
    : context_(context),
      kernels_(kernels),
      threads_(context.threads()),
      independent_rows_(independent_rows),
      partials_(static_cast<size_t>(threads_)),
      column_partials_(static_cast<size_t>(threads_ * threads_ * kColumnsPerThread)) {}

void CpuOps::add_bias(void* dst, const void* src, const void* bias, int64_t rows, int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.bias_activation(f32(dst), f32(src), f32(bias), ActivationSpec{}, columns, begin, end);
  });
}

void CpuOps::rescale(void* dst, const void* src, const float* scale, const float* offset, int64_t rows,
                     int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.rescale(f32(dst), f32(src), scale, offset, columns, begin, end);
  });
}

void CpuOps::column_sum(float* dst, const void* src, int64_t rows, int64_t columns) {
  sum_by_columns(dst, rows, columns,
                 [&](float* sums, int64_t first, int64_t last, int64_t begin, int64_t end) {
                   kernels_.column_sum(sums, f32(src), columns, first, last, begin, end);
                 });
}

void CpuOps::sum_backward_bias(const ActivationSpec& spec, const void* saved,
                               std::span<const void* const> diff_dsts, void* diff_src, float* diff_bias,
                               int64_t rows, int64_t columns) {
  sum_backward(spec, saved, diff_dsts, diff_src, rows * columns);
  column_sum(diff_bias, diff_src, rows, columns);
}

void CpuOps::softmax_forward(const void* src, void* dst, int64_t rows, int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.softmax_forward(f32(src), f32(dst), columns, begin, end);
  });
}

void CpuOps::softmax_backward(const void* dst, const void* diff_dst, void* diff_src, int64_t rows,
                              int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.softmax_backward(f32(dst), f32(diff_dst), f32(diff_src), columns, begin, end);
  });
}

void CpuOps::layer_normalization_forward(const LayerNormalizationArguments& args) {
  each_row(args.rows, args.columns, [&](int64_t begin, int64_t end) {
    kernels_.layer_normalization_forward(f32(args.src), args.gamma, args.beta, args.epsilon, f32(args.dst),
                                         args.mean, args.inverse_deviation, args.columns, begin, end);
  });
}

void CpuOps::layer_normalization_backward(const LayerNormalizationBackwardArguments& args) {
  const int64_t rows = args.rows, columns = args.columns;
  // The parameters' gradients are computed first, because diff_src may be diff_dst.
  if (args.diff_beta) column_sum(args.diff_beta, args.diff_dst, rows, columns);
  if (args.diff_gamma) {
    parallel(threads_, columns, 16, rows, [&](int64_t begin, int64_t end, int) {
      kernels_.layer_normalization_scale(f32(args.src), args.mean, args.inverse_deviation, f32(args.diff_dst),
                                         args.diff_gamma, rows, columns, begin, end);
    });
  }
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.layer_normalization_backward(f32(args.src), args.gamma, args.mean, args.inverse_deviation,
                                          f32(args.diff_dst), f32(args.diff_src), columns, begin, end);
  });
}

void CpuOps::copy_block(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                        int64_t columns) {
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      copy_floats(f32(dst) + r * dst_stride, f32(src) + r * src_stride, columns);
  });
}

void CpuOps::pad_images(const Padding2& padding, const void* src, void* padded, const Shape& src_shape) {
  const int64_t height = src_shape[1], channels = src_shape[3];
  const Rows row{src_shape[2] * channels, padding.left * channels, padding.right * channels};
  const int64_t padded_height = padding.top + height + padding.bottom;
  each_row(src_shape[0] * padded_height, row.padded_width(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t image = r / padded_height, y = r % padded_height - padding.top;
      float* dst = f32(padded) + r * row.padded_width();
      if (y < 0 || y >= height) {
        zero_floats(dst, row.padded_width());
        continue;
      }
      zero_floats(dst, row.left);
      copy_floats(dst + row.left, f32(src) + (image * height + y) * row.width, row.width);
      zero_floats(dst + row.left + row.width, row.right);
    }
  });
}

void CpuOps::crop_images(const Padding2& padding, const void* padded, void* dst, const Shape& dst_shape) {
  const int64_t height = dst_shape[1], channels = dst_shape[3];
  const Rows row{dst_shape[2] * channels, padding.left * channels, padding.right * channels};
  const int64_t padded_height = padding.top + height + padding.bottom;
  each_row(dst_shape[0] * height, row.width, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t from = r / height * padded_height + padding.top + r % height;
      copy_floats(f32(dst) + r * row.width, f32(padded) + from * row.padded_width() + row.left, row.width);
    }
  });
}

void CpuOps::embedding_forward(const float* table, const int32_t* indices, void* dst, int64_t n,
                               int64_t table_rows, int64_t columns) {
  each_row(n, columns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool known = indices[i] >= 0 && indices[i] < table_rows;
      if (known) {
        copy_floats(f32(dst) + i * columns, table + indices[i] * columns, columns);
      } else {
        kernels_.fill(f32(dst) + i * columns, std::numeric_limits<float>::quiet_NaN(), 0, columns);
      }
    }
  });
}

void CpuOps::embedding_backward(const int32_t* indices, const void* diff_dst, float* diff_table, int64_t n,
                                int64_t table_rows, int64_t columns) {
  // The columns are divided among the threads, so each table element is summed by one thread, in the order of
  // the indices.
  parallel(threads_, columns, 16, n + table_rows, [&](int64_t begin, int64_t end, int) {
    kernels_.embedding_backward(indices, f32(diff_dst), diff_table, n, table_rows, columns, begin, end);
  });
}

/// Gathers rows with simple loops. This code is not optimized, because batches for the CPU are already
/// converted when they are read (data/columns/gather.h).
void CpuOps::gather_rows(const GatherSpec& spec, const void* src, const RowList& rows, int64_t n, void* dst) {
  const int64_t elements = spec.row_elements;
  const size_t size = bytes_of(spec.from);
  const bool as_it_is = !spec.scale && spec.from == spec.to;
  if (!as_it_is) check_converts(spec.from, spec.to);
  each_row(n, elements, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const char* row = static_cast<const char*>(src) + static_cast<size_t>(rows[r] * spec.stride()) * size;
      if (as_it_is) {
        std::memcpy(static_cast<char*>(dst) + static_cast<size_t>(r * elements) * size, row,
                    static_cast<size_t>(elements) * size);
      } else {
        kernels_.convert_row(spec, row, f32(dst) + r * elements);
      }
    }
  });
}

}  // namespace dtrain::cpu
