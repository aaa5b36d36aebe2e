#include "run/record/outcome.h"

namespace dtrain {

namespace {

/// Returns the outcome for an "end" event that was written by dtrain 0.1 and has no `outcome`.
Outcome outcome_from_words(const Json& end_event) {
  if (end_event.find("failed")) return Outcome::failed;
  const Json* how = end_event.find("how");
  const std::string words = how && how->is_string() ? how->as_string() : "";
  if (words == "done") return Outcome::done;
  if (words.starts_with("early stopping") || words == "a callback ended it") return Outcome::stopped;
  return words == "max_time is over" ? Outcome::out_of_time : Outcome::interrupted;
}

}  // namespace

const char* name_of(Outcome outcome) {
  for (const auto& [value, name] : names_of<Outcome>)
    if (value == outcome) return name.c_str();
  return "";
}

Outcome outcome_of(const Json& end_event) {
  const Json* written = end_event.find("outcome");
  if (written && written->is_string())
    for (const auto& [value, name] : names_of<Outcome>)
      if (name == written->as_string()) return value;
  return outcome_from_words(end_event);
}

}  // namespace dtrain
