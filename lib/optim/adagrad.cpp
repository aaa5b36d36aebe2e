#include "optim/options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct AdagradOptions : OptimizerOptions {
  AdagradOptions() : OptimizerOptions(0.001) {}
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
};

class Adagrad : public OptimizerWith<AdagradOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override {
    return {{"accumulator", static_cast<float>(options_.initial_accumulator_value)}};
  }
  OptimizerRule rule() const override { return math::Adagrad{static_cast<float>(options_.epsilon)}; }
};

}  // namespace

void add_adagrad(Registry<Optimizer>& table) {
  using Options = AdagradOptions;
  table.add<Adagrad>(
      "adagrad", optimizer_schema<Options>("Adagrad (Duchi et al. 2011): divides the steps of each weight by "
                                           "the square root of the sum of all its squared gradients so far.")
                     .example("{learning_rate: 0.01}")
                     .optional("initial_accumulator_value", &Options::initial_accumulator_value,
                               "initial value of the sum of squared gradients", at_least(0.0))
                     .optional("epsilon", &Options::epsilon, "small number that avoids division by 0",
                               greater_than(0.0)));
}

}  // namespace dtrain
