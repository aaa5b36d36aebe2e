#include <algorithm>

#include "interop/training_formats.h"
#include "optim/step_count.h"

namespace dtrain {

namespace {

Json in_class(const char* class_name, Json config) {
  return Json::object()
      .set("module", "keras.optimizers.schedules")
      .set("class_name", class_name)
      .set("config", std::move(config))
      .set("registered_name", Json());
}

template <class T>
T option_as(const KindSettings& settings, std::string_view option) {
  T value;
  Diagnostics diagnostics;
  Codec<T>::parse(settings.node(option), std::string(option), value, diagnostics);
  diagnostics.throw_if_errors();
  return value;
}

/// Returns the current learning rate, because Keras has no equivalent schedule.
Json rate_now(const ScheduleInRun& in) {
  return in.schedule.at(0, in.run, in.state);
}

/// Returns a conversion to ExponentialDecay or InverseTimeDecay. These two classes have the same options.
std::function<Json(const ScheduleInRun&)> time_decay(const char* class_name) {
  return [class_name](const ScheduleInRun& in) {
    const auto steps = option_as<StepCount>(in.settings, "decay_steps");
    return in_class(class_name, Json::object()
                                    .set("initial_learning_rate", in.settings.number("initial"))
                                    .set("decay_steps", steps.steps_at_least_one(in.run.steps_per_epoch))
                                    .set("decay_rate", in.settings.number("decay_rate"))
                                    .set("staircase", in.settings.flag("staircase")));
  };
}

Json polynomial_decay(const ScheduleInRun& in) {
  const auto length = option_as<OrAuto<StepCount>>(in.settings, "steps");
  return in_class("PolynomialDecay", Json::object()
                                         .set("initial_learning_rate", in.settings.number("initial"))
                                         .set("decay_steps", decay_steps(length, in.run))
                                         .set("end_learning_rate", in.settings.number("end"))
                                         .set("power", in.settings.number("power"))
                                         .set("cycle", in.settings.flag("cycle")));
}

/// Converts a schedule to CosineDecay. In Keras, initial_learning_rate is always the rate of step 0, even if
/// the schedule begins with a warm-up.
Json cosine_decay(const ScheduleInRun& in) {
  const int64_t warmup_steps =
      option_as<StepCount>(in.settings, "warmup_steps").steps(in.run.steps_per_epoch);
  const int64_t steps = decay_steps(option_as<OrAuto<StepCount>>(in.settings, "steps"), in.run, warmup_steps);
  Json config = Json::object().set("decay_steps", steps).set("alpha", in.settings.number("alpha"));
  if (warmup_steps == 0)
    config.set("initial_learning_rate", in.settings.number("initial"));
  else
    config.set("initial_learning_rate", in.settings.number("warmup_initial"))
        .set("warmup_target", in.settings.number("initial"))
        .set("warmup_steps", warmup_steps);
  return in_class("CosineDecay", std::move(config));
}

Json piecewise_constant(const ScheduleInRun& in) {
  Json boundaries = Json::array(), values = Json::array();
  for (const StepCount& boundary : option_as<std::vector<StepCount>>(in.settings, "boundaries"))
    boundaries.push(last_step_of_value(boundary, in.run.steps_per_epoch));
  for (const double value : option_as<std::vector<double>>(in.settings, "values")) values.push(value);
  return in_class("PiecewiseConstantDecay",
                  Json::object().set("boundaries", std::move(boundaries)).set("values", std::move(values)));
}

/// Returns the final (lowest) learning rate. Training in Keras continues with this rate, because Keras has no
/// equivalent schedule.
Json one_cycle(const ScheduleInRun& in) {
  return in.settings.number("max") / in.settings.number("div_factor") /
         in.settings.number("final_div_factor");
}

/// Converts only the schedule that follows the warm-up, because Keras supports a warm-up only for
/// CosineDecay.
Json linear_warmup(const ScheduleInRun& in) {
  const auto then = option_as<Configured<Schedule>>(in.settings, "then");
  return keras_learning_rate(then, run_after(option_as<StepCount>(in.settings, "steps"), in.run), in.state);
}

const std::vector<ScheduleFormats>& all_schedule_formats() {
  static const std::vector<ScheduleFormats> rows{
      {.kind = "constant", .to_keras = rate_now},
      {.kind = "piecewise_constant", .keras_class = "PiecewiseConstantDecay", .to_keras = piecewise_constant},
      {.kind = "exponential_decay",
       .keras_class = "ExponentialDecay",
       .renamed = {{"initial_learning_rate", "initial"}},
       .to_keras = time_decay("ExponentialDecay")},
      {.kind = "inverse_time_decay",
       .keras_class = "InverseTimeDecay",
       .renamed = {{"initial_learning_rate", "initial"}},
       .to_keras = time_decay("InverseTimeDecay")},
      {.kind = "cosine_decay",
       .keras_class = "CosineDecay",
       .renamed = {{"initial_learning_rate", "initial"},
                   {"decay_steps", "steps"},
                   {"warmup_target", "initial"}},
       .to_keras = cosine_decay},
      {.kind = "polynomial_decay",
       .keras_class = "PolynomialDecay",
       .renamed = {{"initial_learning_rate", "initial"},
                   {"end_learning_rate", "end"},
                   {"decay_steps", "steps"}},
       .to_keras = polynomial_decay},
      {.kind = "one_cycle", .to_keras = one_cycle},
      {.kind = "linear_warmup", .to_keras = linear_warmup},
      {.kind = "reduce_on_plateau", .to_keras = rate_now},  // in Keras, this is a callback
  };
  return rows;
}

}  // namespace

const ScheduleFormats& schedule_formats(std::string_view kind) {
  return row_of_kind(all_schedule_formats(), kind);
}

Json keras_learning_rate(const Configured<Schedule>& schedule, const RunLength& run, const Json& state) {
  return schedule_formats(schedule.name).to_keras({*schedule, KindSettings(schedule.resolved), run, state});
}

}  // namespace dtrain
