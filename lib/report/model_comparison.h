// Compares two models: weights, optimizer state, configurations and counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/array_difference.h"
#include "report/compared_model.h"

namespace dtrain {

/// A property with different values on the two sides. The value is "" on a side without the property.
struct ChangedFact {
  std::string name, a, b;
};

/// An array whose values differ between the two sides.
struct ChangedArray {
  std::string name;
  ArrayDifference difference;
};

/// Holds the differences between the weights of the two sides, or between their optimizer slots.
struct ArrayComparison {
  int64_t same = 0;
  std::vector<ChangedArray> changed;  ///< most different first
  std::vector<ChangedFact> shapes;    ///< arrays with different shapes or types
  std::vector<std::string> only_a, only_b;
  bool is_equal() const { return changed.empty() && shapes.empty() && only_a.empty() && only_b.empty(); }
};

/// Holds all differences between two models.
struct ModelComparison {
  std::vector<ChangedFact> config, graph, state;
  std::vector<std::string> data;
  ArrayComparison weights, slots;
  bool has_slots = false;
  bool is_equal() const {
    return config.empty() && graph.empty() && state.empty() && data.empty() && weights.is_equal() &&
           slots.is_equal();
  }
};

/// Compares two models. `tolerance`: see ArrayDifference. If `arrays_only` is true, compares only weights and
/// optimizer slots. Slots, configurations and counters are compared only if both models are checkpoints.
ModelComparison compare_models(const ComparedModel& a, const ComparedModel& b, double tolerance,
                               bool arrays_only);

}  // namespace dtrain
