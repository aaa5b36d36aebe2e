// The options and behavior shared by all optimizers.
#pragma once

#include "optim/constant.h"
#include "optim/optimizer.h"

namespace dtrain {

/// The options that all optimizers have. The options of each optimizer derive from this struct.
struct OptimizerOptions {
  explicit OptimizerOptions(double rate) : learning_rate(constant_rate(rate)) {}
  Configured<Schedule> learning_rate;
  double weight_decay = 0;
};

/// An optimizer with its options.
template <class Options>
class OptimizerWith : public Optimizer {
 public:
  explicit OptimizerWith(Options options) : options_(std::move(options)) {}
  const Schedule& learning_rate() const override { return *options_.learning_rate; }
  double weight_decay() const override { return options_.weight_decay; }

 protected:
  Options options_;
};

/// Returns a schema that begins with the options of OptimizerOptions.
template <class Options>
Schema<Options> optimizer_schema(std::string doc) {
  return Schema<Options>(std::move(doc))
      .template optional<Configured<Schedule>>("learning_rate", &Options::learning_rate,
                                               "the learning rate: a number, or a schedule")
      .template optional<double>("weight_decay", &Options::weight_decay,
                                 "Rate of the weight decay. Every step first subtracts learning_rate * "
                                 "weight_decay * weight from each weight.",
                                 at_least(0.0));
}

}  // namespace dtrain
