// Restrictions on a field's value beyond its type.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// A constraint: its description for messages, its test, and its part of the field's JSON schema.
template <class V>
struct Check {
  std::string expected;                 // description of valid values, such as "a number of at least 1"
  std::function<bool(const V&)> holds;  // if empty, every value passes
  Json schema = Json::object();         // the same restriction for the JSON schema, such as {"minimum": 1}
};

// The following templates are instantiated in check.cpp for V = int, int64_t, double and std::optional of
// these. An optional without a value passes every check.
template <class V>
Check<V> at_least(V low);
template <class V>
Check<V> greater_than(V low);
/// Requires low <= value <= high.
template <class V>
Check<V> between(V low, V high);
/// Requires low <= value < high, e.g. for dropout's rate.
template <class V>
Check<V> between_excluding_high(V low, V high);

/// Requires a list of distinct names, none of which is empty.
Check<std::vector<std::string>> distinct_names();

}  // namespace dtrain
