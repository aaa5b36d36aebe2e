#include "distribute/stages.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace dtrain {

namespace {

/// Number of copies of a value that is read on another stage: the value is copied in forward, and its
/// gradient is copied in backward.
constexpr double kCopies = 2;

/// Adds the time and the activations of a node to a stage. The node's parameters and inputs are added
/// separately.
void load_node(StageLoad& load, const StageDevice& device, size_t i, const StageNode& node) {
  load.seconds += device.seconds[i];
  load.bytes += device.in_flight * node.activation_bytes;
  const int64_t more = std::max<int64_t>(0, node.recomputed_bytes - load.recomputed_bytes);
  load.recomputed_bytes += more;
  load.bytes += more;
}

/// Finds cuts of minimal cost. The cuts are searched over the layers, that is, all nodes except model inputs.
class CutSearch {
 public:
  explicit CutSearch(const StageProblem& problem) : problem_(problem) {
    find_layers();
    find_arrivals();
  }

  int possible_starts() const {
    return static_cast<int>(
        std::count_if(layers_.begin(), layers_.end(), [](const CutLayer& layer) { return layer.may_begin; }));
  }

  /// Returns the stage of each node for the cut with the minimal total cost. `combine` combines the costs of
  /// several stages to a total. `cost(stage, load)` returns the cost of a stage with this load; it is
  /// negative if the stage cannot have this load or any larger load. Returns an empty vector if no cut is
  /// possible.
  template <class Cost, class Combine>
  std::vector<int> best(const Cost& cost, const Combine& combine) const {
    const size_t stages = problem_.devices.size(), n = layers_.size();
    constexpr double kNone = std::numeric_limits<double>::infinity();
    // The first index is the number s of stages, and the second index is the number of layers in the first s
    // stages. `least` is the minimal cost of these s stages, and `begins` is the first layer of the last one
    // of these stages.
    std::vector<std::vector<double>> least(stages + 1, std::vector<double>(n + 1, kNone));
    std::vector<std::vector<size_t>> begins(stages + 1, std::vector<size_t>(n + 1, 0));
    least[0][0] = 0;
    for (size_t stage = 0; stage < stages; ++stage)
      for (size_t begin = stage; begin < n; ++begin) {
        const double before = least[stage][begin];
        if (before == kNone || !layers_[begin].may_begin) continue;
        StageLoad load;
        for (size_t end = begin + 1; end <= n; ++end) {
          add(load, stage, begin, end - 1);
          const double own = cost(stage, load);
          if (own < 0) break;
          const double whole = combine(before, own);
          if (whole >= least[stage + 1][end]) continue;
          least[stage + 1][end] = whole;
          begins[stage + 1][end] = begin;
        }
      }
    if (least[stages][n] == kNone) return {};
    std::vector<int> of_layers(n);
    for (size_t stage = stages, end = n; stage > 0; --stage) {
      const size_t begin = begins[stage][end];
      std::fill(of_layers.begin() + static_cast<ptrdiff_t>(begin),
                of_layers.begin() + static_cast<ptrdiff_t>(end), static_cast<int>(stage) - 1);
      end = begin;
    }
    return of_nodes(of_layers);
  }

 private:
  static constexpr int kNobody = -1;
  /// A value that a layer reads. Layer numbers do not count model inputs.
  struct Arrival {
    int made_by;         // the layer that computes the value; for a model input, its first reader
    int read_before_by;  // the last layer before this one that reads the value
    int64_t bytes;
  };
  struct CutLayer {
    size_t node = 0;
    bool may_begin = true;            // whether a stage may begin with this layer
    int parameters_before = kNobody;  // the last layer before this one that has the same parameters
    std::vector<Arrival> arrivals = {};
  };

  const StageNode& node(size_t i) const { return problem_.nodes[i]; }

  void find_layers() {
    std::map<int, int> users;  // for each owner of parameters, the last layer seen so far that uses them
    layer_of_.assign(problem_.nodes.size(), kNobody);
    for (size_t i = 0; i < problem_.nodes.size(); ++i) {
      if (node(i).is_input) continue;
      const int number = static_cast<int>(layers_.size());
      layer_of_[i] = number;
      layers_.push_back({.node = i, .may_begin = number == 0 || !node(i).stays});
      const int owner = node(i).parameters_of < 0 ? static_cast<int>(i) : node(i).parameters_of;
      const auto [user, is_new] = users.try_emplace(owner, number);
      if (!is_new) layers_.back().parameters_before = user->second;
      user->second = number;
    }
  }

  void find_arrivals() {
    for (const StageValue& value : problem_.values) {
      int made_by = layer_of_[static_cast<size_t>(value.node)], before = kNobody;
      for (const int reader : value.readers) {
        const int layer = layer_of_[static_cast<size_t>(reader)];
        if (made_by == kNobody) made_by = layer;
        if (layer != made_by && layer != before)
          layers_[static_cast<size_t>(layer)].arrivals.push_back({made_by, before, value.bytes});
        before = layer;
      }
    }
  }

  /// Adds layer `number` to the load of a stage that begins with layer `begin`.
  void add(StageLoad& load, size_t stage, size_t begin, size_t number) const {
    const CutLayer& layer = layers_[number];
    const StageDevice& device = problem_.devices[stage];
    const int first = static_cast<int>(begin);
    load_node(load, device, layer.node, node(layer.node));
    if (layer.parameters_before < first) load.bytes += node(layer.node).parameter_bytes;
    for (const Arrival& arrival : layer.arrivals) {
      if (arrival.made_by >= first || arrival.read_before_by >= first) continue;
      load.bytes += device.in_flight * arrival.bytes;
      load.seconds += kCopies * static_cast<double>(arrival.bytes) * problem_.seconds_per_byte;
    }
  }

  std::vector<int> of_nodes(const std::vector<int>& of_layers) const {
    std::vector<int> stages(problem_.nodes.size(), 0);
    for (size_t i = 0; i < layers_.size(); ++i) stages[layers_[i].node] = of_layers[i];
    for (const StageValue& value : problem_.values)
      if (node(static_cast<size_t>(value.node)).is_input && !value.readers.empty())
        stages[static_cast<size_t>(value.node)] = stages[static_cast<size_t>(value.readers.front())];
    return stages;
  }

  const StageProblem& problem_;
  std::vector<CutLayer> layers_;
  std::vector<int> layer_of_;  // layer number of each node; kNobody for model inputs
};

}  // namespace

std::vector<StageLoad> stage_loads(const StageProblem& problem, std::span<const int> stages) {
  std::vector<StageLoad> loads(problem.devices.size());
  std::set<std::pair<int, int>> held;  // pairs (owner of parameters, stage) that have been counted
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    const StageNode& node = problem.nodes[i];
    if (node.is_input) continue;
    const int stage = stages[i];
    const StageDevice& device = problem.devices[static_cast<size_t>(stage)];
    StageLoad& load = loads[static_cast<size_t>(stage)];
    load_node(load, device, i, node);
    const int owner = node.parameters_of < 0 ? static_cast<int>(i) : node.parameters_of;
    if (held.emplace(owner, stage).second) load.bytes += node.parameter_bytes;
  }
  for (const StageValue& value : problem.values) {
    std::set<int> there = {stages[static_cast<size_t>(value.node)]};
    for (const int reader : value.readers) {
      const auto stage = static_cast<size_t>(stages[static_cast<size_t>(reader)]);
      if (!there.insert(static_cast<int>(stage)).second) continue;
      loads[stage].bytes += problem.devices[stage].in_flight * value.bytes;
      loads[stage].seconds += kCopies * static_cast<double>(value.bytes) * problem.seconds_per_byte;
    }
  }
  return loads;
}

StageCut choose_stages(const StageProblem& problem) {
  const CutSearch search(problem);
  StageCut cut;
  cut.possible_starts = search.possible_starts();
  if (cut.possible_starts < static_cast<int>(problem.devices.size())) {
    cut.outcome = StageCut::Outcome::too_few_layers;
    return cut;
  }
  const auto lack = [&](size_t stage, const StageLoad& load) {
    const auto& bytes = problem.devices[stage].bytes;
    return bytes ? std::max<int64_t>(load.bytes - *bytes, 0) : 0;
  };
  constexpr double kCannot = -1;
  double slowest = 0;
  const auto most = [](double a, double b) { return std::max(a, b); };
  cut.stages = search.best(
      [&](size_t stage, const StageLoad& load) { return lack(stage, load) > 0 ? kCannot : load.seconds; },
      most);
  if (cut.stages.empty()) {
    cut.outcome = StageCut::Outcome::too_little_memory;
    cut.stages = search.best(
        [&](size_t stage, const StageLoad& load) { return static_cast<double>(lack(stage, load)); }, most);
    cut.loads = stage_loads(problem, cut.stages);
    return cut;
  }
  for (const StageLoad& load : stage_loads(problem, cut.stages)) slowest = std::max(slowest, load.seconds);
  // Tolerance for rounding errors. It is needed because the seconds may have been summed in a different
  // order.
  constexpr double kRounding = 1 + 1e-12;
  cut.stages = search.best(
      [&](size_t stage, const StageLoad& load) {
        return lack(stage, load) > 0 || load.seconds > slowest * kRounding ? kCannot
                                                                           : load.seconds * load.seconds;
      },
      [](double a, double b) { return a + b; });
  cut.loads = stage_loads(problem, cut.stages);
  return cut;
}

}  // namespace dtrain
