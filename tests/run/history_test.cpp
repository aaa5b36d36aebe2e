// Tests the lines of metrics.jsonl, which are written once per epoch and read back from checkpoints of every
// version.
#include "run/record/history.h"

#include <algorithm>
#include <chrono>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

Json record_of(int64_t epoch) {
  return Json::object()
      .set("epoch", epoch)
      .set("step", 3 * epoch)
      .set("loss", 1.0 / static_cast<double>(epoch));
}

TrainingState state_with(int64_t epochs) {
  TrainingState state;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) state.history.push(record_of(epoch));
  return state;
}

}  // namespace

TEST_CASE("a history is read back unchanged") {
  const TrainingState state = state_with(3);
  CHECK(state.history.last_line() == record_of(3).dump() + "\n");
  const TrainingState read = TrainingState::from_json(state.to_json(), state.history.text());
  CHECK(read.history.text() == state.history.text());
  CHECK(read.history.last_line() == state.history.last_line());
  CHECK(read.history.last().dump() == record_of(3).dump());
  CHECK(History::parse("").last().is_null());
  CHECK(History::parse("").last_line().empty());
}

TEST_CASE("a history within the state of earlier versions is read") {
  Json records = Json::array();
  for (const int64_t epoch : {1, 2, 3}) records.push(record_of(epoch));
  const Json old = state_with(0).to_json().set("history", records);
  CHECK(TrainingState::from_json(old, "").history.text() == state_with(3).history.text());
}

TEST_CASE("tables in a history of earlier versions are kept for the last and the best epoch") {
  std::string lines;
  Json records = Json::array();
  for (const int64_t epoch : {1, 2, 3}) {
    records.push(record_of(epoch).set("matrix", Json::array().push(epoch)));
    lines += records.items().back().dump() + "\n";
  }
  const Json state = state_with(0).to_json().set(
      "best", Json::object().set("value", 0.5).set("step", 3).set("watched", "min loss"));
  for (const bool in_state : {false, true}) {
    CAPTURE(in_state);
    const TrainingState read = TrainingState::from_json(
        in_state ? Json(state).set("history", records) : state, in_state ? "" : lines);
    CHECK(read.history.text() == state_with(3).history.text());
    CHECK(read.history.last_line() == record_of(3).dump() + "\n");
    CHECK(read.table_lines() ==
          "{\"epoch\": 1, \"step\": 3, \"matrix\": [1]}\n{\"epoch\": 3, \"step\": 9, \"matrix\": [3]}\n");
    const TrainingState again =
        TrainingState::from_json(read.to_json(), read.history.text(), read.table_lines());
    CHECK(again.table_lines() == read.table_lines());
    CHECK(*again.best->tables == *read.best->tables);
  }
}

TEST_CASE("a malformed line of tables is a UserError") {
  const TrainingState state = state_with(1);
  const auto read = [&](const char* tables) {
    return TrainingState::from_json(state.to_json(), state.history.text(), tables);
  };
  CHECK(read("{\"epoch\": 1, \"step\": 3, \"matrix\": [1]}\n").tables);
  for (const char* bad :
       {"x\n", "\n", "{}\n", "[]\n", "{\"step\": \"3\"}\n", "{\"epoch\": 1, \"step\": 3}"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(read(bad), UserError);
  }
}

TEST_CASE("a malformed history is a UserError") {
  const std::string good = "{\"epoch\": 1, \"step\": 3}\n";
  CHECK_NOTHROW(History::parse(good));
  for (const char* bad : {"x\n", "\n", "{}\n", "[]\n", "{\"epoch\": 1}\n", "{\"epoch\": 1, \"step\": -1}\n",
                          "{\"epoch\": 1, \"step\": 1.5}\n", "{\"epoch\": 1, \"step\": 3}"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(History::parse(bad), UserError);
    CHECK_THROWS_AS(History::parse(good + bad), UserError);
  }
}

TEST_CASE("a save's time in the trainer's thread does not grow with the number of epochs") {
  const auto fastest = [](const auto& work) {
    double least = 1e9;
    for (int i = 0; i < 10; ++i) {
      const auto start = std::chrono::steady_clock::now();
      CHECK(!work().empty());
      least =
          std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return least;
  };
  const TrainingState state = state_with(5000);
  const double saved = fastest([&] { return state.to_json().dump() + state.history.text(); });
  const double written_out = fastest([] { return state_with(5000).history.text(); });
  CHECK(saved < written_out / 10);  // saving takes about one hundredth of the time of writing all lines
}
