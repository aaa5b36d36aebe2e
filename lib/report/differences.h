// How the configurations of several runs differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// A run's configuration as it was resolved, and the keys that its user wrote.
struct RunSettings {
  Json resolved;  // as settings_of() returns it: text by key
  Json written;   // a list of keys; null if unknown: then every key counts as written
};

/// A key with different values. A run without the key has no value.
struct Difference {
  std::string key;
  std::vector<std::optional<std::string>> values;  // by run
};

/// The written keys whose resolved values differ, sorted. `learning_rate: 0.01` and `dense: 2` are short for
/// `learning_rate: {constant: {value: 0.01}}` and `dense: {units: 2}`, but have the key that was written. The
/// value of a key that chooses a kind is the kind's name. `runs` has one run at least.
std::vector<Difference> find_differences(const std::vector<RunSettings>& runs);

}  // namespace dtrain
