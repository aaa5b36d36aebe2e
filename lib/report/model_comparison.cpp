#include "report/model_comparison.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "config/yaml/yaml.h"
#include "report/run_files.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

std::map<std::string, const ArrayRef*> by_name(const std::vector<ArrayRef>& arrays) {
  std::map<std::string, const ArrayRef*> named;
  for (const ArrayRef& array : arrays) named.emplace(array.name, &array);
  return named;
}

std::span<const float> floats_of(const ArrayRef& array) {
  return {static_cast<const float*>(array.data), static_cast<size_t>(array.shape.elements())};
}

/// Compares an array that both sides have, and records the outcome in `result`. `same_others`: whether arrays
/// without data (WeightFile::other_values()) are equal.
void compare_one(const std::string& name, const ArrayRef& a, const ArrayRef& b, bool same_others,
                 double tolerance, ArrayComparison& result) {
  const auto describe = [](const ArrayRef& array) {
    return fmt::format("{} {}", array.shape.str(), name_of(array.dtype));
  };
  if (a.shape != b.shape || a.dtype != b.dtype) {
    result.shapes.push_back({name, describe(a), describe(b)});
    return;
  }
  if (!a.data || !b.data || a.dtype != DType::float32) {
    const bool same = a.bytes() == 0 || (a.data && b.data && std::memcmp(a.data, b.data, a.bytes()) == 0) ||
                      (!a.data && !b.data && same_others);
    if (same) ++result.same;
    if (!same) result.shapes.push_back({name, "values that are not floats", "different values"});
    return;
  }
  ArrayDifference difference = compare_arrays(floats_of(a), floats_of(b), tolerance);
  if (difference.different == 0) {
    ++result.same;
  } else {
    result.changed.push_back({name, difference});
  }
}

/// `same_others(name)`: see compare_one().
ArrayComparison compare_all(const std::vector<ArrayRef>& a, const std::vector<ArrayRef>& b,
                            const std::function<bool(const std::string&)>& same_others, double tolerance) {
  ArrayComparison result;
  const auto of_a = by_name(a), of_b = by_name(b);
  for (const auto& [name, array] : of_a) {
    const auto other = of_b.find(name);
    if (other == of_b.end()) {
      result.only_a.push_back(name);
    } else {
      compare_one(name, *array, *other->second, same_others(name), tolerance, result);
    }
  }
  for (const auto& [name, array] : of_b)
    if (!of_a.contains(name)) result.only_b.push_back(name);
  std::stable_sort(result.changed.begin(), result.changed.end(),
                   [](const auto& x, const auto& y) { return x.difference.largest > y.difference.largest; });
  return result;
}

/// Returns the arrays of all optimizer slots, with names such as "momentum of dense/kernel".
std::vector<ArrayRef> slots_of(const Checkpoint& checkpoint) {
  std::vector<ArrayRef> arrays;
  for (const OptimizerSlot& slot : checkpoint.content().slots)
    for (ArrayRef array : slot.arrays) {
      array.name = fmt::format("{} of {}", slot.name, array.name);
      arrays.push_back(std::move(array));
    }
  return arrays;
}

/// Returns the settings in the configuration of a checkpoint, by key.
Json settings_in(const Checkpoint& checkpoint) {
  Diagnostics diagnostics;
  const ConfigNode config = parse_yaml(checkpoint.content().config_yaml, checkpoint.path(), diagnostics);
  diagnostics.throw_if_errors();
  return settings_of(config);
}

/// Compares settings. Ignores the name of a run and the folder of its data, because they only say where files
/// are.
void compare_configs(const Checkpoint& a, const Checkpoint& b, ModelComparison& result) {
  const Json of_a = settings_in(a), of_b = settings_in(b);
  std::map<std::string, std::pair<std::string, std::string>> settings;
  for (const auto& [key, value] : of_a.entries()) settings[key].first = value.as_string();
  for (const auto& [key, value] : of_b.entries()) settings[key].second = value.as_string();
  for (const auto& [key, values] : settings) {
    if (values.first == values.second || key == "name" || key == "dataset.root") continue;
    (key.starts_with("model.") ? result.graph : result.config).push_back({key, values.first, values.second});
  }
}

/// Compares counters and data sets.
void compare_states(const Checkpoint& a, const Checkpoint& b, ModelComparison& result) {
  const TrainingState of_a = saved_state(a), of_b = saved_state(b);
  const auto compare = [&](const char* name, int64_t x, int64_t y) {
    if (x != y) result.state.push_back({name, std::to_string(x), std::to_string(y)});
  };
  compare("step", of_a.step, of_b.step);
  compare("epoch", of_a.epoch, of_b.epoch);
  compare("step_in_epoch", of_a.step_in_epoch, of_b.step_in_epoch);
  for (const auto& [split, data] : of_a.data) {
    const auto other = of_b.data.find(split);
    if (other == of_b.data.end()) continue;
    if (const std::string change = describe_change(data, other->second); !change.empty())
      result.data.push_back(fmt::format("{}: {}", split, change));
  }
}

}  // namespace

ModelComparison compare_models(const ComparedModel& a, const ComparedModel& b, double tolerance,
                               bool arrays_only) {
  ModelComparison result;
  const auto same_others = [&](const std::string& name) {
    const std::string_view values = a.file.other_values(name);
    return !values.empty() && values == b.file.other_values(name);
  };
  result.weights = compare_all(a.weights(), b.weights(), same_others, tolerance);
  for (const ComparedModel* model : {&a, &b})
    if (model->imported && model->imported->mapped) model->imported->mapped->check();
  const Checkpoint *of_a = a.file.checkpoint(), *of_b = b.file.checkpoint();
  if (!of_a || !of_b) return result;
  result.has_slots = true;
  result.slots = compare_all(slots_of(*of_a), slots_of(*of_b), same_others, tolerance);
  if (arrays_only) return result;
  compare_configs(*of_a, *of_b, result);
  compare_states(*of_a, *of_b, result);
  return result;
}

}  // namespace dtrain
