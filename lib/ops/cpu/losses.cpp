#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {

void CpuOps::cross_entropy_loss(const CrossEntropySpec& spec, const float* prediction, const View& target,
                                float scale, float* diff_prediction, double* total, int64_t rows,
                                int64_t columns) {
  *total += total_of(rows, 1, columns, [&](int64_t begin, int64_t end) {
    return kernels_.cross_entropy(spec, prediction, target.data, scale, diff_prediction, columns, begin, end);
  });
}

void CpuOps::elementwise_loss(const ElementwiseLossSpec& spec, const float* prediction, const float* target,
                              float scale, float* diff_prediction, double* total, int64_t rows,
                              int64_t columns) {
  const float element_scale = scale / static_cast<float>(columns);
  const double values = total_of(rows * columns, 16, 1, [&](int64_t begin, int64_t end) {
    return kernels_.elementwise_loss(spec, prediction, target, element_scale, diff_prediction, begin, end);
  });
  *total += values / static_cast<double>(columns);
}

void CpuOps::metric(const MetricSpec& spec, const float* prediction, const View& target, double* total,
                    int64_t rows, int64_t columns) {
  using Kind = MetricSpec::Kind;
  const bool of_rows = spec.kind == Kind::sparse_top_k || spec.kind == Kind::categorical_top_k;
  const double values = total_of(rows, 1, columns, [&](int64_t begin, int64_t end) {
    return kernels_.metric(spec, prediction, target.data, columns, begin, end);
  });
  *total += of_rows ? values : values / static_cast<double>(columns);
}

}  // namespace dtrain::cpu
