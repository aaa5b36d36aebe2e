#include "run/run_config.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

std::vector<Optimizer::Slot> RunConfig::slots() const {
  return has_training() ? train.optimizer->slots() : std::vector<Optimizer::Slot>();
}

namespace {

[[noreturn]] void reject_model_alone(const std::string& path, const char* missing, const char* set) {
  throw UserError(fmt::format(
      "{0}: the configuration of this model has no `{1}`. Add it with {2}, or train another configuration "
      "that starts with the weights of this model: `model: {{weights: {{from: {0}}}}}`",
      path, missing, set));
}

}  // namespace

void RunConfig::require_train(const std::string& path) const {
  if (!has_training()) reject_model_alone(path, "train", "--set train.loss=mse --set train.optimizer=adam");
}

void RunConfig::require_dataset(const std::string& path) const {
  if (!has_dataset()) reject_model_alone(path, "dataset", "--set dataset=FILE.yaml");
}

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
      return true;  // any time unit
  }
  return config.checkpoint.best && epochs_left > 1;
}

}  // namespace dtrain
