#include "optim/adam_options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

class Adamax : public OptimizerWith<AdamOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override { return {{"momentum"}, {"norm"}}; }
  OptimizerRule rule() const override {
    return math::Adamax{options_.beta_1, static_cast<float>(options_.beta_2),
                        static_cast<float>(options_.epsilon)};
  }
};

}  // namespace

void add_adamax(Registry<Optimizer>& table) {
  using Options = AdamOptions;
  table.add<Adamax>(
      "adamax",
      optimizer_schema<Options>(
          "Adamax (Kingma and Ba 2015): like Adam, but the steps of each weight are divided by its largest "
          "recent absolute gradient. It is suitable for embeddings and other sparse gradients.")
          .example("{learning_rate: 0.002}")
          .optional("beta_1", &Options::beta_1, "decay rate of the running mean of the gradients",
                    between_excluding_high(0.0, 1.0))
          .optional("beta_2", &Options::beta_2, "decay rate of the largest absolute gradient",
                    between_excluding_high(0.0, 1.0))
          .optional("epsilon", &Options::epsilon, "small number that avoids division by 0",
                    greater_than(0.0)));
}

}  // namespace dtrain
