// Compares the configurations of several runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// The complete configuration of a run, and the keys that the user has written.
struct RunSettings {
  Json resolved;  // settings from settings_of(): maps each key to a text
  Json written;   // list of keys; null if they are unknown, so that all keys count as written
};

/// A key whose value is not the same in all runs. The value is nullopt for runs without the key.
struct Difference {
  std::string key;
  std::vector<std::optional<std::string>> values;  // indexed by run
};

/// Returns the keys whose values differ between the runs, sorted. Keys are reported as the user has written
/// them: `learning_rate: 0.01` and `dense: 2` are short for `learning_rate: {constant: {value: 0.01}}` and
/// `dense: {units: 2}`, but are reported as `learning_rate` and `dense`. If a key chooses a type, its value
/// is the name of the type. `runs` must not be empty.
std::vector<Difference> find_differences(const std::vector<RunSettings>& runs);

}  // namespace dtrain
