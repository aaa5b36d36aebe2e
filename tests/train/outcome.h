// The outcome of a run, for tests that compare runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/runs.h"

namespace dtrain::test {

struct Outcome {
  std::vector<double> losses;      // losses of the steps in this process
  std::vector<float> values;       // all parameters, without gaps
  std::vector<float> slots;        // slots of the optimizer, and averaged weights
  std::vector<Json> history;       // measures of every epoch
  Json tables;                     // tables of the last epoch; null if the metrics have no tables
  std::vector<float> predictions;  // predictions for a few samples
  bool operator==(const Outcome& other) const {
    return losses == other.losses && values == other.values && slots == other.slots &&
           predictions == other.predictions;
  }
};

/// Random samples, like the samples of a data set. Integers are below 8.
class MadeUpBatch : public Batch {
 public:
  explicit MadeUpBatch(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  void read(int64_t first, int64_t, std::span<const View> dst) const override {
    for (size_t column = 0; column < dst.size(); ++column) {
      if (!dst[column].data) continue;
      const int64_t row = dst[column].elements() / dst[column].shape[0];
      for (int64_t i = 0; i < dst[column].elements(); ++i) {
        const double number =
            std::sin(static_cast<double>((first * row + i) * 3 + static_cast<int64_t>(column)));
        if (dst[column].dtype == DType::float32)
          dst[column].f32()[i] = static_cast<float>(number);
        else if (dst[column].dtype == DType::int32)
          dst[column].as<int32_t>()[i] = static_cast<int32_t>(4 + 3.5 * number);
      }
    }
  }

 private:
  int64_t size_;
};

inline std::vector<float> predictions_of(Trainer& trainer, int64_t samples = 5) {
  const Graph& graph = trainer.config().graph;
  const MadeUpBatch batch(samples);
  std::vector<std::vector<float>> outputs;
  std::vector<View> views;
  for (const ValueRef output : graph.outputs) {
    const Shape shape = graph.spec(output).shape.prepended(batch.size());
    outputs.emplace_back(static_cast<size_t>(shape.elements()));
    views.push_back({outputs.back().data(), shape});
  }
  trainer.engine().predict(batch, views);
  std::vector<float> all;
  for (const auto& output : outputs) all.insert(all.end(), output.begin(), output.end());
  return all;
}

/// Appends all parameters to `values` and the slots of the optimizer to `state`, without gaps. Appends
/// nothing in a process that does not get the state (ModelState::download()).
inline void append_arrays(Trainer& trainer, std::vector<float>& values, std::vector<float>& state) {
  const HostArrays arrays = trainer.engine().state().download();
  if (arrays.values.empty()) return;
  const ParameterLayout& layout = trainer.engine().layout();
  const auto take = [](std::span<const float> from, Range range, std::vector<float>& to) {
    const auto part = from.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size()));
    to.insert(to.end(), part.begin(), part.end());
  };
  std::vector<SlotLayout> slots = slot_layouts(layout, trainer.config().slots());
  if (slots.size() < arrays.slots.size()) slots.emplace_back(layout, Optimizer::Slot{std::string(kAverage)});
  for (const ParameterSlice& slice : layout.slices()) {
    take(arrays.values, {slice.offset, slice.offset + slice.elements()}, values);
    if (slice.offset < layout.trained())
      for (size_t s = 0; s < slots.size(); ++s) take(arrays.slots[s], slots[s].of(slice), state);
  }
}

/// Runs an initialized trainer to its end; rethrows its exception.
inline Outcome outcome_of(Trainer& trainer, Recorder& recorder) {
  trainer.run();
  Outcome outcome;
  outcome.losses = recorder.losses;
  append_arrays(trainer, outcome.values, outcome.slots);
  std::istringstream lines(trainer.state().history.text());
  for (std::string line; std::getline(lines, line);) outcome.history.push_back(Json::parse(line));
  if (const TableLine& line = trainer.state().tables) outcome.tables = Json::parse(*line);
  outcome.predictions = predictions_of(trainer);
  return outcome;
}

/// Runs a new run to its end.
inline Outcome outcome_of(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  const TempDir directory;
  Recorder recorder;
  Trainer trainer(plan_from(yaml, sets), RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  return outcome_of(trainer, recorder);
}

template <class T>
double largest_difference_of(const std::vector<T>& a, const std::vector<T>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

/// Compares measures: numbers, or tables of numbers.
inline void check_same_measure(const std::string& key, const Json& found, const Json& expected) {
  if (expected.is_array()) {
    REQUIRE(found.items().size() == expected.items().size());
    for (size_t i = 0; i < expected.items().size(); ++i)
      check_same_measure(key, found.items()[i], expected.items()[i]);
    return;
  }
  CAPTURE(key);
  // Metrics that are sums of floats may differ by rounding errors. Metrics that are computed from counts must
  // be equal.
  const bool counted = key.find("accuracy") != key.npos || key.find("f1_score") != key.npos ||
                       key.find("confusion") != key.npos;
  CHECK(found.as_double() == doctest::Approx(expected.as_double()).epsilon(counted ? 1e-6 : 1e-4));
}

inline void check_same_history(const std::vector<Json>& found, const std::vector<Json>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t epoch = 0; epoch < expected.size(); ++epoch) {
    REQUIRE(found[epoch].entries().size() == expected[epoch].entries().size());
    for (const auto& [key, value] : expected[epoch].entries())
      if (key != "seconds" && key != "samples_per_second") {
        const Json* const its = found[epoch].find(key);
        REQUIRE(its);
        check_same_measure(key, *its, value);
      }
  }
}

/// Checks that two outcomes are equal up to rounding.
inline void check_close(const Outcome& found, const Outcome& expected) {
  REQUIRE(found.losses.size() == expected.losses.size());
  double largest = 0;
  for (size_t i = 0; i < found.losses.size(); ++i)
    largest =
        std::max(largest, std::abs(found.losses[i] - expected.losses[i]) / std::abs(expected.losses[i]));
  CHECK(largest < 1e-4);
  CHECK(largest_difference_of(found.values, expected.values) < 1e-3);
  CHECK(largest_difference_of(found.predictions, expected.predictions) < 1e-3);
  check_same_history(found.history, expected.history);
  REQUIRE(found.tables.is_null() == expected.tables.is_null());
  if (expected.tables.is_null()) return;
  for (const auto& [name, table] : expected.tables.entries())
    check_same_measure(name, found.tables.at(name), table);
}

}  // namespace dtrain::test
