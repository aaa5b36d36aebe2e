#include "optim/adam_options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

class Lamb : public AdamWith<AdamOptions> {
 public:
  using AdamWith::AdamWith;
  OptimizerRule rule() const override {
    return LambRule{static_cast<float>(options_.beta_1), static_cast<float>(options_.beta_2),
                    static_cast<float>(options_.epsilon)};
  }
  /// The rule corrects the bias itself.
  StepNumbers numbers(int64_t step, double learning_rate) const override {
    return OptimizerWith::numbers(step, learning_rate);
  }

 protected:
  std::string keras_class() const override { return ""; }
};

}  // namespace

void add_lamb(Registry<Optimizer>& table) {
  table.add<Lamb>("lamb", adam_schema<AdamOptions>(
                              "You et al. 2020, for large batches: Adam's directions, with steps as long "
                              "beside each weight's norm as the learning rate says.")
                              .example("{learning_rate: 0.002, weight_decay: 0.01}"));
}

}  // namespace dtrain
