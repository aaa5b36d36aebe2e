#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct ReduceOnPlateauOptions {
  double initial = 0;
  std::string monitor = "val_loss";
  double factor = 0.1;
  int64_t patience = 10;
  double min_delta = 1e-4;
  MonitorMode mode = MonitorMode::automatic;
  int64_t cooldown = 0;
  double min = 0;
};

/// The state of the schedule, which changes after each epoch.
struct PlateauState {
  double scale = 1;            // product of all reductions so far
  std::optional<double> best;  // empty before the first finite value
  int64_t wait = 0;            // epochs without improvement
  int64_t cooldown = 0;        // remaining epochs of the cooldown; these epochs do not count in `wait`
  // Identifies the monitored value for which `best` was recorded; the result of watched().
  std::string watched;

  static PlateauState from(const Json& json) {
    PlateauState state;
    if (json.is_null()) return state;
    state.scale = json.at("scale").as_double();
    if (const Json& best = json.at("best"); !best.is_null()) state.best = best.as_double();
    state.wait = json.at("wait").as_int();
    state.cooldown = json.at("cooldown").as_int();
    state.watched = json.at("watched").as_string();
    return state;
  }
  Json json() const {
    return Json::object()
        .set("scale", scale)
        .set("best", best ? Json(*best) : Json())
        .set("wait", wait)
        .set("cooldown", cooldown)
        .set("watched", watched);
  }
};

/// Follows Keras's ReduceLROnPlateau callback step by step.
class ReduceOnPlateau : public Schedule {
 public:
  explicit ReduceOnPlateau(ReduceOnPlateauOptions options) : options_(std::move(options)) {}

  double at(int64_t, const RunLength&, const Json& state) const override {
    return rate(PlateauState::from(state));
  }
  std::string monitor() const override { return options_.monitor; }

  Json after_epoch(Json json, const MetricLookup& metric, std::string& message) const override {
    const std::optional<MonitoredNumber> number = metric(options_.monitor);
    if (!number) return json;
    const MonitorMode mode = resolved(options_.mode, number->larger_is_better);
    PlateauState state = PlateauState::from(json);
    if (const std::string now = watched(mode, options_.monitor); state.watched != now) {
      state.best.reset();  // `scale` is not reset, so that the rate does not change
      state.wait = state.cooldown = 0;
      state.watched = now;
    }
    if (state.cooldown > 0) {
      --state.cooldown;
      state.wait = 0;
    }
    if (better(number->value, state.best, mode)) {
      state.best = number->value;
      state.wait = 0;
    } else if (state.cooldown == 0 && (state.best || !std::isnan(number->value))) {
      ++state.wait;
      if (state.wait >= options_.patience && rate(state) > options_.min) reduce(state, message);
    }
    return state.json();
  }

 private:
  double rate(const PlateauState& state) const {
    const double reduced = std::max(options_.initial * state.scale, options_.min);
    return std::min(options_.initial, reduced);  // if `min` is above `initial`, the rate remains `initial`
  }

  bool better(double value, const std::optional<double>& best, MonitorMode mode) const {
    return best ? improves(value, *best, mode, options_.min_delta) : std::isfinite(value);
  }

  void reduce(PlateauState& state, std::string& message) const {
    state.scale *= options_.factor;
    message = fmt::format("{} has not improved for {}, so the learning rate is reduced to {:.6g}",
                          options_.monitor, format_plural(state.wait, "epoch"), rate(state));
    state.cooldown = options_.cooldown;
    state.wait = 0;
  }

  ReduceOnPlateauOptions options_;
};

}  // namespace

void add_reduce_on_plateau(Registry<Schedule>& table) {
  using Options = ReduceOnPlateauOptions;
  table.add<ReduceOnPlateau>(
      "reduce_on_plateau",
      Schema<Options>("Keras's ReduceLROnPlateau: reduces the rate when a metric has stopped improving.")
          .example("{initial: 0.01, factor: 0.5, patience: 3}")
          .required("initial", &Options::initial, "the rate at the start", at_least(0.0))
          .optional("monitor", &Options::monitor, "name of the monitored metric, as in metrics.jsonl")
          .optional("factor", &Options::factor, "factor by which the rate is multiplied in a reduction",
                    between_excluding_high(0.0, 1.0))
          .optional("patience", &Options::patience,
                    "number of epochs without improvement after which the rate is reduced",
                    at_least<int64_t>(0))
          .optional("min_delta", &Options::min_delta, "the smallest change that counts as an improvement",
                    at_least(0.0))
          .optional("mode", &Options::mode, kMonitorMode)
          .optional("cooldown", &Options::cooldown,
                    "number of epochs after a reduction in which epochs without improvement are not counted",
                    at_least<int64_t>(0))
          .optional("min", &Options::min, "the lowest rate", at_least(0.0)));
}

}  // namespace dtrain
