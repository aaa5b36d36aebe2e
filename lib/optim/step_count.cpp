#include "optim/step_count.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace dtrain {

namespace {
constexpr double kMost = 9.2e18;  // just below the limit of int64_t
}

int64_t StepCount::steps(int64_t steps_per_epoch) const {
  const double steps = in_epochs ? std::round(count * static_cast<double>(steps_per_epoch)) : count;
  return static_cast<int64_t>(std::min(steps, kMost));
}

int64_t StepCount::steps_at_least_one(int64_t steps_per_epoch) const {
  return std::max<int64_t>(steps(steps_per_epoch), 1);
}

int64_t decay_steps(const OrAuto<StepCount>& count, const RunLength& run, int64_t begin) {
  if (count.value) return count.value->steps_at_least_one(run.steps_per_epoch);
  return std::max<int64_t>(run.steps - begin, 1);
}

int64_t last_step_of_value(const StepCount& boundary, int64_t steps_per_epoch) {
  return boundary.steps(steps_per_epoch) - (boundary.in_epochs ? 1 : 0);
}

RunLength run_after(const StepCount& warmup, const RunLength& run) {
  const int64_t steps = warmup.steps(run.steps_per_epoch);
  return {run.steps_per_epoch, run.steps - std::min(steps, run.steps), run.shift};
}

bool Codec<StepCount>::parse(const ConfigNode& node, const std::string& where, StepCount& out,
                             Diagnostics& diagnostics) {
  const auto fail = [&] {
    return report_unexpected(node, where, "a number of steps, such as 400, or of epochs, such as '5 epochs'",
                             diagnostics);
  };
  if (!node.is_scalar()) return fail();
  const std::string& text = node.text();
  StepCount value;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value.count);
  if (error != std::errc() || !(value.count >= 0) || value.count > kMost) return fail();
  std::string_view unit(end, static_cast<size_t>(last - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  value.in_epochs = unit == "epoch" || unit == "epochs";
  const bool in_steps = unit == "step" || unit == "steps" || (unit.empty() && !node.quoted());
  if (!value.in_epochs && !in_steps) return fail();
  if (!value.in_epochs && value.count != std::floor(value.count)) return fail();
  out = value;
  return true;
}

ConfigNode Codec<StepCount>::write(const StepCount& value) {
  if (!value.in_epochs) return Codec<int64_t>::write(static_cast<int64_t>(value.count));
  return ConfigNode::scalar(fmt::format("{} epoch{}", value.count, value.count == 1 ? "" : "s"));
}

Json Codec<StepCount>::schema() {
  Json choices = Json::array();
  choices.push(json_type("integer").set("minimum", 0))
      .push(json_type("string").set("pattern", "^[0-9]*[.]?[0-9]*([eE][-+]?[0-9]+)? *(steps?|epochs?)$"));
  return Json::object().set("title", "steps or epochs").set("anyOf", std::move(choices));
}

}  // namespace dtrain
