// Compares the configurations of several runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// A run's resolved configuration and the keys written by the user.
struct RunSettings {
  Json resolved;  // settings from settings_of(): text by key
  Json written;   // list of keys; null if unknown: every key then counts as written
};

/// A key whose value differs between runs. A run without the key has no value.
struct Difference {
  std::string key;
  std::vector<std::optional<std::string>> values;  // indexed by run
};

/// Returns the written keys whose resolved values differ, sorted. `learning_rate: 0.01` and `dense: 2` are
/// short for `learning_rate: {constant: {value: 0.01}}` and `dense: {units: 2}`, but are reported under the
/// written key. The value of a key that chooses a type is the type's name. `runs` must not be empty.
std::vector<Difference> find_differences(const std::vector<RunSettings>& runs);

}  // namespace dtrain
