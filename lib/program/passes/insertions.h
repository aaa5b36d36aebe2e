// Instructions that a pass adds to a program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "program/instruction.h"

namespace dtrain {

/// Collects instructions with their positions in a program, and inserts all of them at once. Positions refer
/// to the program before the insertions. Instructions that are added at the same position keep their order.
class Insertions {
 public:
  /// The position before all instructions.
  static constexpr int64_t kFront = -1;

  void before(size_t at, Instruction instruction) {
    added_.emplace_back(2 * static_cast<int64_t>(at), std::move(instruction));
  }
  /// `at`: a position, or kFront.
  void after(int64_t at, Instruction instruction) { added_.emplace_back(2 * at + 1, std::move(instruction)); }

  void apply(std::vector<Instruction>& instructions) {
    if (added_.empty()) return;
    std::stable_sort(added_.begin(), added_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Instruction> all;
    all.reserve(instructions.size() + added_.size());
    auto next = added_.begin();
    const auto take_until = [&](int64_t place) {
      for (; next != added_.end() && next->first <= place; ++next) all.push_back(std::move(next->second));
    };
    for (size_t at = 0; at < instructions.size(); ++at) {
      take_until(2 * static_cast<int64_t>(at));
      all.push_back(std::move(instructions[at]));
    }
    take_until(2 * static_cast<int64_t>(instructions.size()) + 1);
    instructions = std::move(all);
  }

 private:
  std::vector<std::pair<int64_t, Instruction>> added_;
};

}  // namespace dtrain
