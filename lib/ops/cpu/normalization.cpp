// RMS normalization of rows, and group normalization.
#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {

void CpuOps::rms_normalization_forward(const RmsNormalizationArguments& args) {
  each_row(args.rows, args.columns, [&](int64_t begin, int64_t end) {
    kernels_.rms_normalization_forward(f32(args.src), args.scale, args.norm, f32(args.dst), args.inverse,
                                       args.columns, begin, end);
  });
}

void CpuOps::rms_normalization_backward(const RmsNormalizationBackwardArguments& args) {
  const int64_t rows = args.rows, columns = args.columns;
  // The scale's gradient is computed first, because diff_src may be diff_dst.
  if (args.diff_scale) {
    parallel(threads_, columns, 16, rows, [&](int64_t begin, int64_t end, int) {
      kernels_.rms_normalization_scale(f32(args.src), args.inverse, f32(args.diff_dst), args.diff_scale, rows,
                                       columns, begin, end);
    });
  }
  if (!args.diff_src) return;
  each_row(rows, columns, [&](int64_t begin, int64_t end) {
    kernels_.rms_normalization_backward(f32(args.src), args.scale, args.norm, args.inverse,
                                        f32(args.diff_dst), f32(args.diff_src), columns, begin, end);
  });
}

void CpuOps::group_normalization_forward(const GroupNormalizationArguments& args) {
  const int64_t of_group = args.pixels * args.channels / args.groups;
  each_row(args.samples * args.groups, of_group, [&](int64_t begin, int64_t end) {
    kernels_.group_normalization_forward(f32(args.src), args.gamma, args.beta, args.epsilon, f32(args.dst),
                                         args.mean, args.inverse_deviation, args.pixels, args.channels,
                                         args.groups, begin, end);
  });
}

void CpuOps::group_normalization_backward(const GroupNormalizationBackwardArguments& args) {
  const int64_t rows = args.samples * args.pixels, channels = args.channels;
  // The parameters' gradients are computed first, because diff_src may be diff_dst.
  if (args.diff_beta) column_sum(args.diff_beta, args.diff_dst, rows, channels);
  if (args.diff_gamma) {
    parallel(threads_, channels, 16, rows, [&](int64_t begin, int64_t end, int) {
      kernels_.group_normalization_scale(f32(args.src), args.mean, args.inverse_deviation, f32(args.diff_dst),
                                         args.diff_gamma, args.samples, args.pixels, channels, args.groups,
                                         begin, end);
    });
  }
  if (!args.diff_src) return;
  each_row(args.samples * args.groups, args.pixels * channels / args.groups, [&](int64_t begin, int64_t end) {
    kernels_.group_normalization_backward(f32(args.src), args.gamma, args.mean, args.inverse_deviation,
                                          f32(args.diff_dst), f32(args.diff_src), args.pixels, channels,
                                          args.groups, begin, end);
  });
}

}  // namespace dtrain::cpu
