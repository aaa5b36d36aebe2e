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
