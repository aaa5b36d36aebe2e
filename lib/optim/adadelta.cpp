#include "optim/options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct AdadeltaOptions : OptimizerOptions {
  AdadeltaOptions() : OptimizerOptions(0.001) {}
  double rho = 0.95;
  double epsilon = 1e-7;
};

class Adadelta : public OptimizerWith<AdadeltaOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override { return {{"accumulated_grad"}, {"accumulated_delta_var"}}; }
  OptimizerRule rule() const override {
    return math::Adadelta{static_cast<float>(options_.rho), static_cast<float>(options_.epsilon)};
  }
};

}  // namespace

void add_adadelta(Registry<Optimizer>& table) {
  using Options = AdadeltaOptions;
  table.add<Adadelta>(
      "adadelta",
      optimizer_schema<Options>(
          "Adadelta (Zeiler 2012): adapts the length of each weight's steps to its recent gradients and its "
          "recent steps. The learning rate is 1 in the paper; the default here is Keras's.")
          .example("{learning_rate: 1}")
          .optional("rho", &Options::rho,
                    "decay rate of the running means of squared gradients and squared steps",
                    between_excluding_high(0.0, 1.0))
          .optional("epsilon", &Options::epsilon, "small number that prevents steps of length 0 at the start",
                    greater_than(0.0)));
}

}  // namespace dtrain
