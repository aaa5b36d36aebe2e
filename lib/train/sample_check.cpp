#include "train/sample_check.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "data/column.h"

namespace dtrain {

namespace {

/// What a column goes to, and what that takes.
struct Taker {
  std::string name;
  Bounds bounds;
};

template <class V>
void check_column(const Dataset& data, size_t column, const Taker& taker, const std::string& use) {
  const int64_t elements = std::max<int64_t>(data.columns()[column].shape.elements(), 1);
  const int64_t block = std::max<int64_t>((int64_t{1} << 20) / elements, 1);
  std::vector<V> values;
  for (int64_t first = 0; first < data.size(); first += block) {
    const std::vector<int64_t> rows = row_numbers(first, std::min(block, data.size() - first));
    values.resize(rows.size() * static_cast<size_t>(elements));
    data.read_column(column, rows, values.data());
    const auto wrong = std::find_if(values.begin(), values.end(), [&](V value) {
      return !(static_cast<double>(value) >= taker.bounds.least &&
               static_cast<double>(value) <= taker.bounds.most);
    });
    if (wrong == values.end()) continue;
    throw UserError(
        fmt::format("sample {} (from 0) of the split that is {} has {} for '{}', which takes {} to {}",
                    first + (wrong - values.begin()) / elements, use, *wrong, taker.name, taker.bounds.least,
                    taker.bounds.most));
  }
}

/// The layer that takes this input as indices into the fewest.
std::optional<Taker> taker_of_input(const Graph& graph, int input) {
  std::optional<Taker> taker;
  for (const GraphNode& node : graph.nodes) {
    const std::optional<int64_t> indices = node.layer ? node.layer->indices() : std::nullopt;
    if (!indices || node.inputs[0] != input) continue;
    const auto most = static_cast<double>(*indices - 1);
    if (!taker || most < taker->bounds.most) taker = Taker{node.name, {0, most}};
  }
  return taker;
}

}  // namespace

void check_samples(const RunConfig& config, const Dataset& data, const std::string& use, bool all) {
  const size_t inputs = config.graph.inputs.size();
  for (size_t column = 0; column < data.columns().size(); ++column) {
    std::optional<Taker> taker;
    if (column < inputs) {
      taker = taker_of_input(config.graph, config.graph.inputs[column]);
    } else {
      const Head& head = config.heads[column - inputs];
      const TensorSpec& output = config.graph.nodes[static_cast<size_t>(head.node)].output;
      if (const auto bounds = head.loss->target_bounds(output))
        taker = Taker{config.graph.layer_name(head.node), *bounds};
    }
    if (!taker) continue;
    if (data.columns()[column].dtype == DType::int32) {
      check_column<int32_t>(data, column, *taker, use);
    } else if (all) {
      check_column<float>(data, column, *taker, use);
    }
  }
}

}  // namespace dtrain
