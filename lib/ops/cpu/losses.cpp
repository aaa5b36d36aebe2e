#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {
namespace {

float scaled(float scale, const float* loss_scale) {
  return loss_scale ? scale * *loss_scale : scale;
}

}  // namespace

void CpuOps::cross_entropy_loss(const CrossEntropySpec& spec, const void* prediction, const View& target,
                                float scale, const float* loss_scale, void* diff_prediction, double* total,
                                int64_t rows, int64_t columns) {
  *total += total_of(rows, 1, columns, [&](int64_t begin, int64_t end) {
    return kernels_.cross_entropy(spec, f32(prediction), target.data, scaled(scale, loss_scale),
                                  f32(diff_prediction), columns, begin, end);
  });
}

void CpuOps::elementwise_loss(const ElementwiseLossSpec& spec, const void* prediction, const float* target,
                              float scale, const float* loss_scale, void* diff_prediction, double* total,
                              int64_t rows, int64_t columns) {
  const float element_scale = scaled(scale, loss_scale) / static_cast<float>(columns);
  const double values = total_of(rows * columns, 16, 1, [&](int64_t begin, int64_t end) {
    return kernels_.elementwise_loss(spec, f32(prediction), target, element_scale, f32(diff_prediction),
                                     begin, end);
  });
  *total += values / static_cast<double>(columns);
}

void CpuOps::metric(const MetricSpec& spec, const void* prediction, const View& target, double* total,
                    int64_t rows, int64_t columns) {
  using Kind = MetricSpec::Kind;
  const bool of_rows = spec.kind == Kind::sparse_top_k || spec.kind == Kind::categorical_top_k;
  const double values = total_of(rows, 1, columns, [&](int64_t begin, int64_t end) {
    return kernels_.metric(spec, f32(prediction), target.data, columns, begin, end);
  });
  *total += of_rows ? values : values / static_cast<double>(columns);
}

}  // namespace dtrain::cpu
