// Code shared by adam and adamw, which differ only in the default weight decay.
#pragma once

#include "optim/options.h"

namespace dtrain {

struct AdamOptions : OptimizerOptions {
  AdamOptions() : OptimizerOptions(0.001) {}
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};

template <class Options>
class AdamWith : public OptimizerWith<Options> {
 public:
  using OptimizerWith<Options>::OptimizerWith;
  std::vector<Optimizer::Slot> slots() const override { return {{"momentum"}, {"velocity"}}; }
  OptimizerRule rule() const override {
    const Options& o = this->options_;
    return math::Adam{o.beta_1, o.beta_2, static_cast<float>(o.epsilon)};
  }
};

template <class Options>
Schema<Options> adam_schema(std::string doc) {
  return optimizer_schema<Options>(std::move(doc))
      .template optional<double>("beta_1", &Options::beta_1,
                                 "decay rate of the running mean of the gradients",
                                 between_excluding_high(0.0, 1.0))
      .template optional<double>("beta_2", &Options::beta_2,
                                 "decay rate of the running mean of the squared gradients",
                                 between_excluding_high(0.0, 1.0))
      .template optional<double>("epsilon", &Options::epsilon, "small number that avoids division by 0",
                                 greater_than(0.0));
}

}  // namespace dtrain
