// PReLU and its gradients.
#include "ops/math/prelu.h"

#include <algorithm>

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {

namespace {

/// Calls use(element, slope) for the elements in [begin, end).
template <class Use>
void each_with_slope(const PreluSpec& spec, int64_t begin, int64_t end, Use&& use) {
  const int64_t last = spec.extents.back(), step = spec.steps.back();
  while (begin < end) {
    int64_t slope = 0, rest = begin;
    for (size_t axis = PreluSpec::kAxes; axis-- > 0; rest /= spec.extents[axis])
      slope += rest % spec.extents[axis] * spec.steps[axis];
    const int64_t count = std::min(end - begin, last - begin % last);
    if (step == 0) {
      for (int64_t i = 0; i < count; ++i) use(begin + i, slope);
    } else if (step == 1) {
      for (int64_t i = 0; i < count; ++i) use(begin + i, slope + i);
    } else {
      for (int64_t i = 0; i < count; ++i) use(begin + i, slope + i * step);
    }
    begin += count;
  }
}

/// View of an array's elements as [rows, columns], with one column per slope.
class SlopeColumns {
 public:
  explicit SlopeColumns(const PreluSpec& spec) : spec_(spec), rows_(spec.elements() / spec.slopes()) {
    int64_t stride = 1;
    for (size_t axis = PreluSpec::kAxes; axis-- > 0; stride *= spec.extents[axis]) {
      strides_[axis] = stride;
      if (spec.extents[axis] == 1) continue;
      if (spec.steps[axis] == 1) in_columns_ = {spec.extents[axis], stride};
      if (spec.steps[axis] == 0 && in_rows_.extent == 1) in_rows_ = {spec.extents[axis], stride};
    }
  }
  int64_t rows() const { return rows_; }

  /// Writes sums[c] = the sum of the slope gradients of rows [begin, end), for columns c in [first, last).
  void sum(const float* src, const float* diff_dst, float* sums, int64_t first, int64_t last, int64_t begin,
           int64_t end) const {
    std::fill(sums + first, sums + last, 0.0f);
    for (int64_t r = begin; r < end;) {
      const int64_t rows = std::min(end - r, in_rows_.extent - r % in_rows_.extent);
      for (int64_t c = first; c < last;) {
        const int64_t columns = std::min(last - c, in_columns_.extent - c % in_columns_.extent);
        const int64_t at = element(r, c);
        add_block(src + at, diff_dst + at, sums + c, rows, columns);
        c += columns;
      }
      r += rows;
    }
  }

 private:
  /// An axis along which consecutive rows (or consecutive columns) are `stride` elements apart.
  struct Run {
    int64_t extent = 1, stride = 1;
  };

  int64_t element(int64_t row, int64_t column) const {
    int64_t place = 0;
    for (size_t axis = PreluSpec::kAxes; axis-- > 0;) {
      const int64_t extent = spec_.extents[axis], step = spec_.steps[axis];
      place += (step != 0 ? column / step % extent : row % extent) * strides_[axis];
      if (step == 0) row /= extent;
    }
    return place;
  }

  void add_block(const float* src, const float* diff_dst, float* sums, int64_t rows, int64_t columns) const {
    const int64_t down = in_rows_.stride, across = in_columns_.stride;
    const auto term = [&](int64_t at) { return math::prelu_slope_gradient(src[at], diff_dst[at]); };
    if (columns == 1) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += static_cast<double>(term(r * down));
      sums[0] += static_cast<float>(sum);
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      if (across == 1) {
        for (int64_t c = 0; c < columns; ++c) sums[c] += term(r * down + c);
      } else {
        for (int64_t c = 0; c < columns; ++c) sums[c] += term(r * down + c * across);
      }
    }
  }

  PreluSpec spec_;
  int64_t rows_;
  std::array<int64_t, PreluSpec::kAxes> strides_{};
  Run in_rows_, in_columns_;
};

}  // namespace

void CpuOps::prelu_forward(const PreluSpec& spec, const void* src, const float* slopes, void* dst) {
  const float* const x = f32(src);
  float* const y = f32(dst);
  each(spec.elements(), [&](int64_t begin, int64_t end) {
    each_with_slope(spec, begin, end,
                    [=](int64_t i, int64_t slope) { y[i] = math::prelu(x[i], slopes[slope]); });
  });
}

void CpuOps::prelu_backward(const PreluSpec& spec, const PreluBackwardArguments& args) {
  const float *const x = f32(args.src), *const dy = f32(args.diff_dst), *const slopes = args.slopes;
  // The slopes' gradients are computed first, because diff_src may be diff_dst.
  if (args.diff_slopes) {
    const SlopeColumns columns(spec);
    sum_by_columns(args.diff_slopes, columns.rows(), spec.slopes(),
                   [&](float* sums, int64_t first, int64_t last, int64_t begin, int64_t end) {
                     columns.sum(x, dy, sums, first, last, begin, end);
                   });
  }
  if (!args.diff_src) return;
  float* const dx = f32(args.diff_src);
  each(spec.elements(), [&](int64_t begin, int64_t end) {
    each_with_slope(spec, begin, end, [=](int64_t i, int64_t slope) {
      dx[i] = math::prelu_backward(x[i], slopes[slope], dy[i]);
    });
  });
}

}  // namespace dtrain::cpu
