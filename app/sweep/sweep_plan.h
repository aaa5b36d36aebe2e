// Which runs a sweep is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

/// A key with the values that it is to have.
struct VariedKey {
  std::string key;
  std::vector<std::string> values;  // YAML
};

/// What `--set` says: assignments that all runs share, and keys that vary.
struct SweepSets {
  std::vector<std::string> fixed;  // "KEY=VALUE"
  std::vector<VariedKey> varied;
};

/// Splits each "KEY=A,B,C" at the commas outside brackets, braces and quotes. Throws UserError for a value
/// that is missing or given twice, and for a key that is given twice.
SweepSets parse_sweep_sets(const std::vector<std::string>& sets);

/// The values of one setting, by key, in the order of the keys.
using SettingValues = std::vector<std::pair<std::string, std::string>>;

/// Every combination of the values, the last key's changing fastest; or `random` of them, drawn by `seed`, in
/// that order. One without values where no key varies. Throws UserError for more than 10,000.
std::vector<SettingValues> sweep_settings(const std::vector<VariedKey>& varied, std::optional<int64_t> random,
                                          int64_t seed);

/// A name that a folder can have, for these values: "learning_rate=0.001,units=64". Different for different
/// values.
std::string name_of_setting(const SettingValues& values);

}  // namespace dtrain
