#include "train/run_config.h"

namespace dtrain {

std::vector<TensorSpec> RunConfig::targets() const {
  std::vector<TensorSpec> specs;
  for (const Head& head : heads) specs.push_back(head.target);
  return specs;
}

GpuMath gpu_math(const TrainOptions& train) {
  GpuMath math{.tf32 = train.precision == Precision::tf32, .deterministic = train.deterministic};
  if (train.precision == Precision::mixed_bfloat16) math.type = DType::bfloat16;
  if (train.precision == Precision::mixed_float16) math.type = DType::float16;
  return math;
}

bool saves_on_the_way(const RunConfig& config, int64_t epochs_left, int64_t steps_per_epoch) {
  const Interval& every = config.checkpoint.every;
  switch (every.unit) {
    case Interval::Unit::step:
      if (every.count < static_cast<double>(epochs_left * steps_per_epoch)) return true;
      break;
    case Interval::Unit::epoch:
      if (every.count < static_cast<double>(epochs_left)) return true;
      break;
    case Interval::Unit::automatic:
      if (epochs_left > 1) return true;
      break;
    default:
      return true;  // a time
  }
  return config.checkpoint.best && epochs_left > 1;
}

}  // namespace dtrain
