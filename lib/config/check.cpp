#include "config/check.h"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace dtrain {

namespace {

/// Returns `value`, or the number that it contains if it is an optional.
template <class V>
auto number_of(const V& value) {
  if constexpr (requires { value.value(); })
    return value.value();
  else
    return value;
}

template <class V, class Holds>
Check<V> number_check(std::string expected, Holds holds, Json schema) {
  const auto passes = [holds](const V& value) {
    if constexpr (requires { value.has_value(); })
      return !value || holds(*value);
    else
      return holds(value);
  };
  return {std::move(expected), passes, std::move(schema)};
}

template <class N>
Json json_number(N value) {
  if constexpr (std::integral<N>)
    return Json(static_cast<int64_t>(value));
  else
    return Json(static_cast<double>(value));
}

}  // namespace

template <class V>
Check<V> at_least(V low) {
  const auto least = number_of(low);
  return number_check<V>(
      fmt::format("a number of at least {}", least), [least](const auto& value) { return value >= least; },
      Json::object().set("minimum", json_number(least)));
}

template <class V>
Check<V> greater_than(V low) {
  const auto limit = number_of(low);
  return number_check<V>(
      fmt::format("a number greater than {}", limit), [limit](const auto& value) { return value > limit; },
      Json::object().set("exclusiveMinimum", json_number(limit)));
}

template <class V>
Check<V> between(V low, V high) {
  const auto least = number_of(low), most = number_of(high);
  return number_check<V>(
      fmt::format("a number from {} to {}", least, most),
      [least, most](const auto& value) { return value >= least && value <= most; },
      Json::object().set("minimum", json_number(least)).set("maximum", json_number(most)));
}

template <class V>
Check<V> between_excluding_high(V low, V high) {
  const auto least = number_of(low), limit = number_of(high);
  return number_check<V>(
      fmt::format("a number of at least {} and less than {}", least, limit),
      [least, limit](const auto& value) { return value >= least && value < limit; },
      Json::object().set("minimum", json_number(least)).set("exclusiveMaximum", json_number(limit)));
}

#define DTRAIN_NUMBER_CHECKS(V)         \
  template Check<V> at_least<V>(V);     \
  template Check<V> greater_than<V>(V); \
  template Check<V> between<V>(V, V);   \
  template Check<V> between_excluding_high<V>(V, V)
DTRAIN_NUMBER_CHECKS(int);
DTRAIN_NUMBER_CHECKS(int64_t);
DTRAIN_NUMBER_CHECKS(double);
DTRAIN_NUMBER_CHECKS(std::optional<int>);
DTRAIN_NUMBER_CHECKS(std::optional<int64_t>);
DTRAIN_NUMBER_CHECKS(std::optional<double>);
#undef DTRAIN_NUMBER_CHECKS

Check<std::vector<std::string>> distinct_names() {
  return {"names that differ from each other and are not empty",
          [](const std::vector<std::string>& names) {
            return std::set(names.begin(), names.end()).size() == names.size() &&
                   std::find(names.begin(), names.end(), "") == names.end();
          },
          Json::object().set("uniqueItems", true)};
}

}  // namespace dtrain
