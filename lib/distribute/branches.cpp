#include "distribute/branches.h"

#include <algorithm>

namespace dtrain {

namespace {

constexpr double kForward = 1.0 / 3, kBackward = 2.0 / 3;  // fractions of a layer's time

class Branches {
 public:
  explicit Branches(const StageProblem& problem) : problem_(problem), inputs_(problem.nodes.size()) {
    for (const StageValue& value : problem.values)
      for (const int reader : value.readers) inputs_[static_cast<size_t>(reader)].push_back(&value);
  }

  std::vector<int> place() const {
    std::vector<int> slots(problem_.nodes.size(), 0);
    std::vector<double> free(problem_.devices.size(), 0.0), ends(problem_.nodes.size(), 0.0);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (problem_.nodes[i].is_input) continue;
      slots[i] = earliest(i, slots, free, ends);
      ends[i] = free[static_cast<size_t>(slots[i])] = end_of(i, slots[i], slots, free, ends);
    }
    return slots;
  }

  double seconds(std::span<const int> slots) const {
    std::vector<double> free(problem_.devices.size(), 0.0), ends(slots.size(), 0.0);
    for (size_t i = 0; i < slots.size(); ++i)
      if (!problem_.nodes[i].is_input)
        ends[i] = free[static_cast<size_t>(slots[i])] = end_of(i, slots[i], slots, free, ends);
    // Backward begins at the loss, so it starts after the forward pass of the last layer.
    std::fill(free.begin(), free.end(), *std::max_element(free.begin(), free.end()));
    // For each node, the time at which the gradient of its output is complete.
    std::vector<double> ready(slots.size(), 0.0);
    for (size_t i = slots.size(); i-- > 0;) {
      if (problem_.nodes[i].is_input) continue;
      double& its = free[static_cast<size_t>(slots[i])];
      its = std::max(its, ready[i]) + kBackward * own_seconds(i, slots[i]);
      for (const StageValue* value : inputs_[i]) {
        double& gradient = ready[static_cast<size_t>(value->node)];
        gradient = std::max(gradient, its + copy_seconds(*value, i, slots[i], slots));
      }
    }
    return *std::max_element(free.begin(), free.end());
  }

 private:
  double own_seconds(size_t node, int slot) const {
    return problem_.devices[static_cast<size_t>(slot)].seconds[node];
  }
  /// Returns the time, in seconds, to copy `value` to `slot`, where `reader` reads it. A model input is on
  /// the slot of its first reader. It is copied only to other slots.
  double copy_seconds(const StageValue& value, size_t reader, int slot, std::span<const int> slots) const {
    const bool is_input = problem_.nodes[static_cast<size_t>(value.node)].is_input;
    const auto from = static_cast<size_t>(is_input ? value.readers.front() : value.node);
    if (from == reader || slots[from] == slot) return 0;
    return static_cast<double>(value.bytes) * problem_.seconds_per_byte;
  }
  /// Returns the time, in seconds, to copy shared parameters from the slot of their owner at the start of a
  /// step. The result is an upper bound, because parameter_bytes includes gradients and optimizer state.
  double parameters_seconds(size_t node, int slot, std::span<const int> slots) const {
    const int owner = problem_.nodes[node].parameters_of;
    if (owner < 0 || slots[static_cast<size_t>(owner)] == slot) return 0;
    return static_cast<double>(problem_.nodes[node].parameter_bytes) * problem_.seconds_per_byte;
  }
  /// Returns the time at which the forward pass of the node would end if the node were on `slot`. The slot
  /// cannot compute another node before this time.
  double end_of(size_t node, int slot, std::span<const int> slots, std::span<const double> free,
                std::span<const double> ends) const {
    double begin = std::max(free[static_cast<size_t>(slot)], parameters_seconds(node, slot, slots));
    for (const StageValue* value : inputs_[node])
      begin =
          std::max(begin, ends[static_cast<size_t>(value->node)] + copy_seconds(*value, node, slot, slots));
    return begin + kForward * own_seconds(node, slot);
  }
  int earliest(size_t node, std::span<const int> slots, std::span<const double> free,
               std::span<const double> ends) const {
    if (problem_.nodes[node].stays) return slots[node - 1];
    // If several slots are equally good, prefers the slot of the first input, to avoid unnecessary copies.
    int best = inputs_[node].empty() ? 0 : slots[static_cast<size_t>(inputs_[node].front()->node)];
    double end = end_of(node, best, slots, free, ends);
    for (int slot = 0; slot < static_cast<int>(free.size()); ++slot)
      if (const double other = end_of(node, slot, slots, free, ends); other < end) {
        best = slot;
        end = other;
      }
    return best;
  }

  const StageProblem& problem_;
  std::vector<std::vector<const StageValue*>> inputs_;  // for each node, the values that it reads
};

}  // namespace

std::vector<int> place_branches(const StageProblem& problem) {
  return Branches(problem).place();
}

double branches_seconds(const StageProblem& problem, std::span<const int> slots) {
  return Branches(problem).seconds(slots);
}

}  // namespace dtrain
