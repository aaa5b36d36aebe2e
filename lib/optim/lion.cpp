#include "optim/options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct LionOptions : OptimizerOptions {
  LionOptions() : OptimizerOptions(0.001) {}
  double beta_1 = 0.9;
  double beta_2 = 0.99;
};

class Lion : public OptimizerWith<LionOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override { return {{"momentum"}}; }
  OptimizerRule rule() const override {
    return math::Lion{static_cast<float>(options_.beta_1), static_cast<float>(options_.beta_2)};
  }
};

}  // namespace

void add_lion(Registry<Optimizer>& table) {
  table.add<Lion>(
      "lion",
      optimizer_schema<LionOptions>("Lion (Chen et al. 2023): changes every weight by the learning rate, in "
                                    "the direction opposite to the sign of a running mean of the gradients. "
                                    "A good learning rate is three to ten times smaller than for Adam.")
          .example("{learning_rate: 0.0001, weight_decay: 0.1}")
          .optional("beta_1", &LionOptions::beta_1,
                    "Weight of the running mean in the direction of a step. The current gradient has the "
                    "weight 1 - beta_1.",
                    between_excluding_high(0.0, 1.0))
          .optional("beta_2", &LionOptions::beta_2, "decay rate of the running mean of the gradients",
                    between_excluding_high(0.0, 1.0)));
}

}  // namespace dtrain
