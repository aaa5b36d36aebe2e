// Regularizers and constraints.
#include "ops/cpu/cpu_ops.h"
#include "ops/math/penalties.h"

namespace dtrain::cpu {

void CpuOps::add_penalty(const PenaltySpec& penalty, const float* weights, double* total, int64_t n) {
  *total += total_of(
      n, 16, 1, [&](int64_t begin, int64_t end) { return kernels_.penalty(penalty, weights, begin, end); });
}

void CpuOps::add_penalty_gradient(const PenaltySpec& penalty, const PenaltyArguments& args) {
  const float scale = math::penalty_scale(args.rule, args.row_weights, *args.state);
  each(args.n, [&](int64_t begin, int64_t end) {
    kernels_.add_penalty_gradient(penalty, scale, args.weights, args.gradient, begin, end);
  });
}

void CpuOps::add_activity_penalty(const PenaltySpec& penalty, const void* values, double* total, int64_t n) {
  add_penalty(penalty, f32(values), total, n);
}

void CpuOps::activity_gradient(const PenaltySpec& penalty, const float* loss_scale, const void* values,
                               void* dst, int64_t n) {
  each(n, [&](int64_t begin, int64_t end) {
    kernels_.fill(f32(dst), 0, begin, end);
    kernels_.add_penalty_gradient(penalty, *loss_scale, f32(values), f32(dst), begin, end);
  });
}

namespace {

math::VectorPair pair_of(const OrthogonalSpec& spec, const float* weights, int64_t a, int64_t b) {
  math::VectorPair pair;
  for (int64_t k = 0; k < spec.extent; ++k)
    pair.add(weights[a * spec.stride + k * spec.step], weights[b * spec.stride + k * spec.step]);
  return pair;
}

}  // namespace

void CpuOps::add_orthogonal_penalty(const OrthogonalSpec& spec, const float* weights, double* total) {
  const double sum = total_of(spec.vectors, 1, spec.vectors * spec.extent, [&](int64_t begin, int64_t end) {
    double own = 0;
    for (int64_t a = begin; a < end; ++a)
      for (int64_t b = 0; b < spec.vectors; ++b)
        if (b != a) own += pair_of(spec, weights, a, b).size_of_cosine();
    return own;
  });
  *total += static_cast<double>(math::orthogonal_factor(spec)) * sum;
}

void CpuOps::add_orthogonal_gradient(const OrthogonalSpec& spec, const PenaltyArguments& args,
                                     int64_t first) {
  // The penalty contains each pair of vectors twice, as (a, b) and as (b, a). Therefore, the gradient has the
  // factor 2.
  const double scale = 2 *
                       static_cast<double>(math::penalty_scale(args.rule, args.row_weights, *args.state)) *
                       static_cast<double>(math::orthogonal_factor(spec));
  parallel(threads_, spec.vectors, 1, spec.vectors * spec.extent, [&](int64_t begin, int64_t end, int) {
    for (int64_t a = begin; a < end; ++a)
      for (int64_t b = 0; b < spec.vectors; ++b) {
        if (b == a) continue;
        const math::VectorPair pair = pair_of(spec, args.weights, a, b);
        const double of_a = scale * pair.factor_a(), of_b = scale * pair.factor_b();
        for (int64_t k = 0; k < spec.extent; ++k) {
          const int64_t at = a * spec.stride + k * spec.step, other = b * spec.stride + k * spec.step;
          if (at < first || at >= first + args.n) continue;
          args.gradient[at - first] += static_cast<float>(of_a * static_cast<double>(args.weights[at]) +
                                                          of_b * static_cast<double>(args.weights[other]));
        }
      }
  });
}

void CpuOps::constrain(const ConstraintSpec& spec, const StepState* state, float* weights, void*) {
  if (state->gradient.skip) return;
  const int64_t columns = spec.outer * spec.inner;
  if (spec.non_negative)
    return each(columns * spec.extent,
                [&](int64_t begin, int64_t end) { kernels_.remove_negatives(weights, begin, end); });
  parallel(threads_, columns, 16, spec.extent,
           [&](int64_t begin, int64_t end, int) { kernels_.limit_norms(spec, weights, begin, end); });
}

}  // namespace dtrain::cpu
