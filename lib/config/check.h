// Restrictions on a field's value beyond its type.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"

namespace dtrain {

/// What a restriction says in messages, its test, and what it adds to the field's JSON schema.
template <class V>
struct Check {
  std::string expected;                 // "a number of at least 1"
  std::function<bool(const V&)> holds;  // empty: every value passes
  Json schema = Json::object();         // {"minimum": 1}
};

// These are for V = int, int64_t, double, and optional ones of them (check.cpp): an optional without a value
// passes.
template <class V>
Check<V> at_least(V low);
template <class V>
Check<V> greater_than(V low);
/// Both ends are included.
template <class V>
Check<V> between(V low, V high);
/// low <= value < high, as dropout's rate.
template <class V>
Check<V> between_excluding_high(V low, V high);

}  // namespace dtrain
