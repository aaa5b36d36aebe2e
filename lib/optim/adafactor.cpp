#include "optim/options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct AdafactorOptions : OptimizerOptions {
  AdafactorOptions() : OptimizerOptions(0.001) {}
  double beta_2_decay = -0.8;
  double epsilon_1 = 1e-30;
  double epsilon_2 = 1e-3;
  double clip_threshold = 1;
};

class Adafactor : public OptimizerWith<AdafactorOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override {
    return {{"row_mean", 0, SlotShape::row_means},
            {"column_mean", 0, SlotShape::column_means},
            {"velocity", 0, SlotShape::vector}};
  }
  OptimizerRule rule() const override {
    return math::Adafactor{options_.beta_2_decay, static_cast<float>(options_.epsilon_1),
                           static_cast<float>(options_.epsilon_2),
                           static_cast<float>(options_.clip_threshold)};
  }
};

}  // namespace

void add_adafactor(Registry<Optimizer>& table) {
  using Options = AdafactorOptions;
  table.add<Adafactor>(
      "adafactor",
      optimizer_schema<Options>(
          "Adafactor (Shazeer and Stern 2018): an optimizer that needs little memory. For a weight with two "
          "or more axes, it stores one mean per row and one mean per column instead of arrays with the shape "
          "of the weight. The length of a step is proportional to the root mean square of the weight. The "
          "learning rate is limited to 1 / sqrt(step), as in Keras (with and without relative_step).")
          .example("{learning_rate: 0.01}")
          .optional("beta_2_decay", &Options::beta_2_decay,
                    "Exponent of the decay rate. In step t, the running means keep the fraction 1 - "
                    "t^beta_2_decay of their old values.",
                    between(-10.0, 0.0))
          .optional("epsilon_1", &Options::epsilon_1,
                    "small number that is added to squared gradients to avoid division by 0",
                    greater_than(0.0))
          .optional("epsilon_2", &Options::epsilon_2,
                    "The length of a step is proportional to the root mean square of the weight. If this is "
                    "less than epsilon_2, the length is proportional to epsilon_2 instead.",
                    at_least(0.0))
          .optional("clip_threshold", &Options::clip_threshold,
                    "Upper limit of the root mean square of a step. The limit applies before the step is "
                    "multiplied by the learning rate and by the root mean square of the weight.",
                    greater_than(0.0)));
}

}  // namespace dtrain
