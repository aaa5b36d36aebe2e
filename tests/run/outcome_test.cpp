// Tests the outcome of a run that is recorded in run.jsonl.
#include "run/record/outcome.h"

#include <doctest/doctest.h>

namespace dtrain::test {

TEST_CASE("the outcome of a run does not depend on its description") {
  for (const auto& [outcome, name] : names_of<Outcome>) {
    INFO(name);
    const Json event = Json::object().set("event", "end").set("outcome", name).set("how", "in other words");
    CHECK(outcome_of(event) == outcome);
    CHECK(name_of(outcome) == name);
  }
}

TEST_CASE("events of dtrain 0.1, which have no outcome, are read") {
  const auto of = [](const char* how) { return outcome_of(Json::object().set("how", how)); };
  CHECK(of("done") == Outcome::done);
  CHECK(of("early stopping: val_loss has not improved on 0.5 for 3 epochs") == Outcome::stopped);
  CHECK(of("a callback ended it") == Outcome::stopped);
  CHECK(of("max_time is over") == Outcome::out_of_time);
  CHECK(of("stopped by SIGTERM") == Outcome::interrupted);
  CHECK(outcome_of(Json::object().set("how", "disk full").set("failed", true)) == Outcome::failed);
  CHECK(outcome_of(Json::object().set("how", "x").set("outcome", "unheard of")) == Outcome::interrupted);
}

}  // namespace dtrain::test
