// Determines the runs of a sweep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

/// A key and its values.
struct VariedKey {
  std::string key;
  std::vector<std::string> values;  // YAML
};

/// Parsed --set options: assignments that all runs share, and varied keys.
struct SweepSets {
  std::vector<std::string> fixed;  // "KEY=VALUE"
  std::vector<VariedKey> varied;
};

/// Splits each "KEY=A,B,C" at the commas outside brackets, braces and quotes. Throws UserError for a missing
/// or repeated value, and for a repeated key.
SweepSets parse_sweep_sets(const std::vector<std::string>& sets);

/// A setting of a sweep: a pair of key and value for each varied key, in the order of the keys.
using SettingValues = std::vector<std::pair<std::string, std::string>>;

/// Returns every combination of the values. The last key changes fastest. If `random` is given, returns only
/// this number of combinations, drawn with `seed`, in the same order. Returns one empty setting if no key
/// varies. Throws UserError for more than 10,000 settings.
std::vector<SettingValues> sweep_settings(const std::vector<VariedKey>& varied, std::optional<int64_t> random,
                                          int64_t seed);

/// Returns a valid and unique folder name for these values: "learning_rate=0.001,units=64".
std::string name_of_setting(const SettingValues& values);

}  // namespace dtrain
