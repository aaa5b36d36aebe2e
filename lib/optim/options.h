// What every optimizer has, written once.
#pragma once

#include "optim/constant.h"
#include "optim/optimizer.h"

namespace dtrain {

/// The options that all optimizers share; each optimizer's own derive from it.
struct OptimizerOptions {
  explicit OptimizerOptions(double rate) : learning_rate(constant_rate(rate)) {}
  Kind<Schedule> learning_rate;
  double weight_decay = 0;
};

/// Holds its options and builds the common part of a step.
template <class Options>
class OptimizerWith : public Optimizer {
 public:
  explicit OptimizerWith(Options options) : options_(std::move(options)) {}
  const Schedule& learning_rate() const override { return *options_.learning_rate; }

 protected:
  template <class Rule>
  OptimizerStep step_with(Rule rule, double learning_rate, double gradient_scale) const {
    return {rule, static_cast<float>(gradient_scale),
            static_cast<float>(learning_rate * options_.weight_decay)};
  }

  Options options_;
};

/// A schema that begins with the common options of `Options`.
template <class Options>
Schema<Options> optimizer_schema(std::string doc) {
  return Schema<Options>(std::move(doc))
      .template optional<Kind<Schedule>>("learning_rate", &Options::learning_rate,
                                         "a number, or how the rate goes with the steps")
      .template optional<double>("weight_decay", &Options::weight_decay,
                                 "every step first takes learning_rate * weight_decay of each weight away",
                                 at_least(0.0));
}

}  // namespace dtrain
