#include "train/epoch_report.h"

#include "run/monitors.h"

namespace dtrain {

EpochReport::EpochReport(const RunConfig& config, int64_t epoch, int64_t step)
    : config_(config), record_(Json::object().set("epoch", epoch).set("step", step)), tables_(epoch, step) {}

void EpochReport::add(const Measures& measures, const std::string& prefix) {
  measures.add_numbers_to(record_, prefix);
  for (const auto& [name, value] : measures.numbers) numbers_.emplace_back(prefix + name, value);
  for (const auto& [name, table] : measures.tables) tables_.add(prefix + name, table);
  for (const auto& [name, curve] : measures.curves) tables_.add(prefix + name, curve);
}

void EpochReport::add_speed(double learning_rate, double seconds, double samples_per_second) {
  record_.set("learning_rate", learning_rate)
      .set("seconds", seconds)
      .set("samples_per_second", samples_per_second);
}

MetricLookup EpochReport::metric() const {
  return [this](const std::string& name) -> std::optional<MonitoredNumber> {
    for (const auto& [known, value] : numbers_)
      if (known == name) return MonitoredNumber{value, larger_is_better(config_, name)};
    return std::nullopt;
  };
}

}  // namespace dtrain
