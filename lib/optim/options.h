// The options and behavior shared by all optimizers.
#pragma once

#include "optim/constant.h"
#include "optim/optimizer.h"

namespace dtrain {

/// Options shared by all optimizers; each optimizer's options derive from it.
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
  /// Returns null if there is a weight decay. In an .h5 file Keras 2 looks up an optimizer by class name
  /// among TensorFlow 2.10's classes, which have no weight decay. It finds the newer classes only under names
  /// such as "Custom>AdamW" and with an option (is_legacy_optimizer) that Keras 3 rejects.
  Json keras_config(const RunLength& run, const Json& schedule) const override {
    if (options_.weight_decay != 0 || keras_class().empty()) return {};
    Json config = keras_options();
    config.set("learning_rate", learning_rate().keras_config(run, schedule));
    return Json::object().set("class_name", keras_class()).set("config", std::move(config));
  }

 protected:
  /// Returns the class name in Keras, or "" if Keras 2 and 3 do not both have the optimizer.
  virtual std::string keras_class() const { return ""; }
  /// Returns the options except the shared ones, with numbers as floats: Keras 3 rejects a momentum that is
  /// the integer 0.
  virtual Json keras_options() const { return Json::object(); }

  Options options_;
};

/// Returns a schema that starts with the shared options.
template <class Options>
Schema<Options> optimizer_schema(std::string doc) {
  return Schema<Options>(std::move(doc))
      .template optional<Configured<Schedule>>("learning_rate", &Options::learning_rate,
                                               "a number, or a schedule")
      .template optional<double>(
          "weight_decay", &Options::weight_decay,
          "every step first subtracts learning_rate * weight_decay * weight from each weight", at_least(0.0));
}

}  // namespace dtrain
