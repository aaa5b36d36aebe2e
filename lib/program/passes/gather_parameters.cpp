#include <algorithm>
#include <map>
#include <utility>

#include "program/passes/insertions.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

using Kind = ProgramValue::Kind;

/// Returns true if only alignment padding separates the slice from the range.
bool follows(const Range& range, const ParameterSlice& slice) {
  return slice.offset >= range.end && slice.offset - range.end < 16;
}

class Gathering {
 public:
  explicit Gathering(CompileState& step) : step_(step), program_(step.program) {}

  void insert() {
    find_uses();
    for (size_t i = 0; i < uses_.size(); ++i) gather_for(i);
    insertions_.apply(program_.instructions);
  }

 private:
  /// An instruction that reads a node's parameters.
  struct Use {
    size_t at = 0;
    int node = 0;
    // Whether the instruction is a forward call that is repeated in the backward pass (recompute()).
    bool is_made_again = false;
  };
  /// Adjacent parameters that are gathered together.
  struct Run {
    Range range;
    ValueId value = ValueId::none, weights = ValueId::none;
  };

  const Instruction& instruction(const Use& use) const { return program_.instructions[use.at]; }

  void find_uses() {
    for (size_t at = 0; at < program_.instructions.size(); ++at) {
      const Instruction& reader = program_.instructions[at];
      if (const auto* forward = std::get_if<LayerForward>(&reader.work))
        add_use(at, program_.calls[forward->call].node, reader.phase == Phase::backward);
      if (const auto* backward = std::get_if<LayerBackward>(&reader.work))
        add_use(at, program_.calls[backward->call].node, false);
      if (const auto* zero = std::get_if<ZeroGradient>(&reader.work); zero && zero->is_statistic)
        add_use(at, reader.node, false);
    }
  }

  void add_use(size_t at, NodeId id, bool is_made_again) {
    const auto node = static_cast<int>(id);
    if (!step_.node(node).parameters.empty()) uses_.push_back({at, node, is_made_again});
  }

  /// Gathers the parameters of a use. Also starts to gather the parameters of the next use in the same phase,
  /// so that they are gathered while this use computes.
  void gather_for(size_t number) {
    const Use& use = uses_[number];
    begin(use.node, use);
    std::vector<Run> runs = under_way_.extract(use.node).mapped();
    JoinGathered join;
    for (const Run& run : runs) join.gathered.push_back(run.value);
    insert(use, step_.node(use.node).name + " join", std::move(join));
    if (const Use* next = next_use(number)) begin(next->node, use);
    for (Run& run : runs) cast(run, use);
    place(use, runs);
  }

  const Use* next_use(size_t number) const {
    if (uses_[number].is_made_again) return nullptr;
    const bool back = instruction(uses_[number]).phase == Phase::backward;
    for (size_t next = number + 1; next < uses_.size(); ++next) {
      const Use& use = uses_[next];
      if (use.is_made_again || use.node == uses_[number].node) continue;
      return (instruction(use).phase == Phase::backward) == back ? &use : nullptr;
    }
    return nullptr;
  }

  void insert(const Use& use, std::string name, Work work) {
    const Instruction& reader = instruction(use);
    insertions_.before(use.at, {reader.slot, reader.phase, reader.node, std::move(name), std::move(work)});
  }

  /// Starts to gather a node's parameters before a use, unless they are already being gathered.
  void begin(int node, const Use& ahead_of) {
    const auto [entry, is_new] = under_way_.try_emplace(node);
    if (!is_new) return;
    std::vector<const ParameterSlice*> slices;
    for (size_t k = 0; k < step_.node(node).parameters.size(); ++k)
      slices.push_back(&step_.slice_of(node, k));
    std::sort(slices.begin(), slices.end(),
              [](const ParameterSlice* a, const ParameterSlice* b) { return a->offset < b->offset; });
    std::vector<Run>& runs = entry->second;
    for (const ParameterSlice* slice : slices) {
      if (runs.empty() || !follows(runs.back().range, *slice)) runs.push_back({.range = {slice->offset, 0}});
      runs.back().range.end = slice->offset + slice->elements();
    }
    const std::string& name = step_.node(node).name;
    for (Run& run : runs) {
      run.value = step_.add_array(Kind::parameter, "parameters of " + name, instruction(ahead_of).slot,
                                  static_cast<size_t>(run.range.size()) * sizeof(float));
      insert(ahead_of, name + " gather", GatherParameters{.range = run.range, .to = run.value});
    }
  }

  void cast(Run& run, const Use& use) {
    run.weights = run.value;
    const int slot = instruction(use).slot;
    const DType type = step_.compute_type(slot);
    if (type == DType::float32) return;
    const std::string name = "parameters of " + step_.node(use.node).name;
    run.weights =
        step_.add_array(Kind::parameter, name, slot, static_cast<size_t>(run.range.size()) * bytes_of(type));
    insert(use, name + " cast", CastParameters{run.value, run.weights, run.range.size()});
  }

  static ParameterPlace place_in(const std::vector<Run>& runs, int64_t offset) {
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const Run& one) {
      return offset >= one.range.begin && offset < std::max(one.range.end, one.range.begin + 1);
    });
    return {.value = run->value, .weights = run->weights, .at = offset - run->range.begin};
  }

  void place(const Use& use, const std::vector<Run>& runs) {
    Work& work = program_.instructions[use.at].work;
    if (auto* zero = std::get_if<ZeroGradient>(&work)) {
      zero->statistic = place_in(runs, zero->statistic.offset);
      return;
    }
    const auto* forward = std::get_if<LayerForward>(&work);
    for (ParameterPlace& parameter :
         program_.calls[forward ? forward->call : std::get<LayerBackward>(work).call].parameters)
      parameter = place_in(runs, parameter.offset);
  }

  CompileState& step_;
  Program& program_;
  std::vector<Use> uses_;
  std::map<int, std::vector<Run>> under_way_;  // gathers that have started, by node
  Insertions insertions_;
};

}  // namespace

void gather_parameters(CompileState& step) {
  if (step.options.gathers_parameters) Gathering(step).insert();
}

}  // namespace dtrain
