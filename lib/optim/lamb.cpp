#include "optim/adam_options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

class Lamb : public OptimizerWith<AdamOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override { return {{"momentum"}, {"velocity"}}; }
  OptimizerRule rule() const override {
    return math::Lamb{static_cast<float>(options_.beta_1), static_cast<float>(options_.beta_2),
                      static_cast<float>(options_.epsilon)};
  }
};

}  // namespace

void add_lamb(Registry<Optimizer>& table) {
  table.add<Lamb>(
      "lamb",
      adam_schema<AdamOptions>(
          "LAMB (You et al. 2020), an optimizer for large batches. Each weight tensor moves in the direction "
          "of Adam's step, and the length of the step is learning_rate times the norm of the tensor.")
          .example("{learning_rate: 0.002, weight_decay: 0.01}"));
}

}  // namespace dtrain
