#include "optim/options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct RmspropOptions : OptimizerOptions {
  RmspropOptions() : OptimizerOptions(0.001) {}
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;
};

class Rmsprop : public OptimizerWith<RmspropOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override {
    std::vector<Slot> slots{{"velocity"}};
    if (options_.centered) slots.push_back({"average_gradient"});
    if (options_.momentum != 0) slots.push_back({"momentum"});
    return slots;
  }
  OptimizerRule rule() const override {
    const bool has_momentum = options_.momentum != 0;
    if (options_.centered) return has_momentum ? rule_of<true, true>() : rule_of<true, false>();
    return has_momentum ? rule_of<false, true>() : rule_of<false, false>();
  }

 private:
  template <bool kCentered, bool kMomentum>
  OptimizerRule rule_of() const {
    return math::Rmsprop<kCentered, kMomentum>{static_cast<float>(options_.rho),
                                               static_cast<float>(options_.momentum),
                                               static_cast<float>(options_.epsilon)};
  }
};

}  // namespace

void add_rmsprop(Registry<Optimizer>& table) {
  using Options = RmspropOptions;
  table.add<Rmsprop>(
      "rmsprop",
      optimizer_schema<Options>("RMSprop: divides the steps of each weight by the square root of the running "
                                "mean of its squared gradients.")
          .example("{learning_rate: 0.001, rho: 0.95}")
          .optional("rho", &Options::rho, "decay rate of the running means", between_excluding_high(0.0, 1.0))
          .optional("momentum", &Options::momentum,
                    "momentum: the fraction of the previous step that is added to each step",
                    between(0.0, 1.0))
          .optional("epsilon", &Options::epsilon, "small number that avoids division by 0", greater_than(0.0))
          .optional(
              "centered", &Options::centered,
              "If true, steps are divided by the standard deviation of the gradients (centered RMSprop). If "
              "false, they are divided by the square root of the mean of the squared gradients."));
}

}  // namespace dtrain
