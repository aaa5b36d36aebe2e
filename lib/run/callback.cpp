#include "run/callback.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dtrain {

namespace {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  int64_t patience = 0;
  double min_delta = 0;
  MonitorMode mode = MonitorMode::automatic;
};

/// Ends training if a metric has not improved for `patience` epochs (0 means 1), like Keras's EarlyStopping.
class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options) : options_(options) {}
  std::string monitor() const override { return options_.monitor; }

  Verdict after_epoch(Json& state, const MetricLookup& metric) const override {
    const std::optional<MonitoredNumber> number = metric(options_.monitor);
    if (!number) return {};
    const double value = number->value;
    const MonitorMode mode = resolved(options_.mode, number->larger_is_better);
    const std::string now = watched(mode, options_.monitor);
    const bool goes_on = !state.is_null() && state.at("watched").as_string() == now;
    const double best = goes_on ? state.at("best").as_double() : std::nan("");
    const int64_t waited = goes_on ? state.at("waited").as_int() : 0;
    const bool better = improves(value, best, mode, options_.min_delta);
    // While the metric has been NaN in all epochs so far, there is no best value to compare with, and no
    // epoch counts as an epoch without improvement.
    const int64_t waiting = better || std::isnan(best) ? 0 : waited + 1;
    state = Json::object().set("best", better ? value : best).set("waited", waiting).set("watched", now);
    if (waiting < std::max<int64_t>(options_.patience, 1)) return {};
    return {true, fmt::format("early stopping: {} has not improved on {:.6g} for {} epoch{}",
                              options_.monitor, best, waiting, waiting == 1 ? "" : "s")};
  }
  /// Waits for `patience` further epochs. Otherwise the run would stop again after one epoch.
  void continue_after_stop(Json& state) const override {
    if (!state.is_null()) state.set("waited", 0);
  }

 private:
  EarlyStoppingOptions options_;
};

struct TerminateOnNanOptions {
  bool enabled = true;
};

/// Ends a run whose loss is NaN or infinite, before its weights are saved in a checkpoint.
class TerminateOnNan final : public Callback {
 public:
  explicit TerminateOnNan(const TerminateOnNanOptions& options) : enabled_(options.enabled) {}
  void after_step(int64_t step, int64_t epoch, double loss) const override {
    if (!enabled_ || std::isfinite(loss)) return;
    throw Error(fmt::format("the loss is {} at step {} (epoch {}); earlier checkpoints are unchanged",
                            std::isnan(loss) ? "nan" : "infinite", step, epoch));
  }
  bool wants_finite_weights() const override { return enabled_; }

 private:
  bool enabled_;
};

struct EmaOptions {
  double decay = 0.999;
};

class Ema final : public Callback {
 public:
  explicit Ema(const EmaOptions& options) : decay_(options.decay) {}
  std::optional<double> average_decay() const override { return decay_; }

 private:
  double decay_;
};

/// Holds the options only. report/tensorboard.h observes the run and writes the numbers.
class TensorboardCallback final : public Callback {
 public:
  explicit TensorboardCallback(const TensorboardOptions& options) : options_(options) {}
  const TensorboardOptions* tensorboard() const override { return &options_; }

 private:
  TensorboardOptions options_;
};

}  // namespace

bool wants_finite_weights(const std::vector<Configured<Callback>>& callbacks) {
  return std::any_of(callbacks.begin(), callbacks.end(),
                     [](const auto& callback) { return callback->wants_finite_weights(); });
}

template <>
const Registry<Callback>& registry<Callback>() {
  static const Registry<Callback> table = [] {
    Registry<Callback> t("callback");
    t.add<EarlyStopping>(
        "early_stopping",
        Schema<EarlyStoppingOptions>("Ends the training when a monitored metric has stopped improving.")
            .example("{monitor: val_loss, patience: 5}")
            .optional("monitor", &EarlyStoppingOptions::monitor,
                      "the metric that is monitored, by its name in metrics.jsonl, such as `val_loss`")
            .optional("patience", &EarlyStoppingOptions::patience,
                      "number of epochs without improvement after which the training ends; 0 has the same "
                      "effect as 1",
                      at_least<int64_t>(0))
            .optional("min_delta", &EarlyStoppingOptions::min_delta,
                      "minimum change of the metric that counts as an improvement", at_least<double>(0))
            .optional("mode", &EarlyStoppingOptions::mode, kMonitorMode));
    t.add<TerminateOnNan>("terminate_on_nan",
                          Schema<TerminateOnNanOptions>(
                              "Ends the run with an error if the loss is NaN or infinite, or if weights are "
                              "NaN or infinite at the end of an epoch or when they are saved.")
                              .example("{enabled: false}")
                              .optional("enabled", &TerminateOnNanOptions::enabled,
                                        "whether the callback is active. If it is not active, the run "
                                        "continues, but weights that are NaN or infinite are not saved"));
    t.add<Ema>(
        "ema",
        Schema<EmaOptions>(
            "Computes an exponential moving average of the weights (Polyak and Juditsky 1992). Before the "
            "first step, the average is a copy of the initial weights. Every step, from the first one on, "
            "updates the average. If `ema` is added to a run that is resumed, the average begins as a copy "
            "of the weights at this time. Validation, evaluation, prediction and export use the average "
            "instead of the weights. Checkpoints contain the average as the weights of the model, and in "
            "addition the weights from which training continues.")
            .example("{decay: 0.999}")
            .optional(
                "decay", &EmaOptions::decay,
                "decay of the average: in every step, average = decay * average + (1 - decay) * weights",
                between_excluding_high(0.0, 1.0)));
    t.add<TensorboardCallback>(
        "tensorboard",
        Schema<TensorboardOptions>(
            "Writes additional data to the folder tensorboard/ of the run directory. Every run, also without "
            "this callback, writes the metrics of each epoch there.")
            .example("{update_freq: 100, histogram_freq: 1, write_grads: true, input_images: 8}")
            .optional("update_freq", &TensorboardOptions::update_freq,
                      "how often the loss of the batch, the learning rate and the speed are written: `batch` "
                      "writes them in every step, a number N in every Nth step, and `epoch` in no step")
            .optional("histogram_freq", &TensorboardOptions::histogram_freq,
                      "interval, in epochs, at which a histogram of every weight is written; with 0, no "
                      "histograms are written",
                      at_least<int64_t>(0))
            .optional("write_grads", &TensorboardOptions::write_grads,
                      "whether to also write a histogram of the gradient of every weight. It shows the "
                      "gradient of the last step of the epoch as the optimizer uses it (with lamb and "
                      "adafactor: the direction of the update). Requires histogram_freq")
            .optional("write_graph", &TensorboardOptions::write_graph,
                      "whether to write the graph of the model's layers")
            .optional("input_images", &TensorboardOptions::input_images,
                      "number of training samples to write as images. The images show the inputs that the "
                      "model receives in the first epoch, after augmentations and transforms. The samples "
                      "are evenly spaced in the split. Only inputs of the shape [height, width] or [height, "
                      "width, channels] with 1, 3 or 4 channels are written",
                      between<int64_t>(0, 1000))
            .rule([](const TensorboardOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
              if (options.write_grads && options.histogram_freq == 0)
                diagnostics.error(node,
                                  "tensorboard: write_grads requires histograms; also set histogram_freq");
            }));
    return t;
  }();
  return table;
}

}  // namespace dtrain
