#include "ops/math/optimizers.h"
#include "optim/adam_options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

/// Not an AdamWith: the rate is the plain learning rate, and the rule reads both bias corrections.
class Lamb : public OptimizerWith<AdamOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override { return {{"momentum"}, {"velocity"}}; }
  OptimizerRule rule() const override {
    return LambRule{static_cast<float>(options_.beta_1), static_cast<float>(options_.beta_2),
                    static_cast<float>(options_.epsilon)};
  }
  StepNumbers numbers(int64_t step, double learning_rate) const override {
    StepNumbers numbers = OptimizerWith::numbers(step, learning_rate);
    const auto steps = static_cast<double>(step + 1);
    numbers.mean_scale = math::LambDirection::correction(static_cast<float>(options_.beta_1), steps);
    numbers.square_scale = math::LambDirection::correction(static_cast<float>(options_.beta_2), steps);
    return numbers;
  }
};

}  // namespace

void add_lamb(Registry<Optimizer>& table) {
  table.add<Lamb>(
      "lamb", adam_schema<AdamOptions>("You et al. 2020, for large batches: Adam's direction for each weight "
                                       "tensor, with a step length of learning_rate times the tensor's norm.")
                  .example("{learning_rate: 0.002, weight_decay: 0.01}"));
}

}  // namespace dtrain
