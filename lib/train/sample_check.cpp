#include "train/sample_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "data/columns/column.h"

namespace dtrain {

namespace {

/// The layer or loss that reads a column of the data (or the row weights), and the values that it accepts.
struct Consumer {
  std::string name;
  Bounds bounds;
  bool is_unit_a_class = false;  // for outputs: whether each unit is one class
  int64_t units = 0;             // for outputs whose units are classes: number of units
};

template <class V>
void check_column(const Dataset& data, size_t column, const Consumer& consumer, const std::string& split) {
  const int64_t elements = std::max<int64_t>(data.columns()[column].shape.elements(), 1);
  const int64_t block = std::max<int64_t>((int64_t{1} << 20) / elements, 1);
  std::vector<V> values;
  for (int64_t first = 0; first < data.size(); first += block) {
    const std::vector<int64_t> rows = row_numbers(first, std::min(block, data.size() - first));
    values.resize(rows.size() * static_cast<size_t>(elements));
    data.read_column(column, {rows}, values.data());
    const auto wrong = std::find_if(values.begin(), values.end(), [&](V value) {
      return !(static_cast<double>(value) >= consumer.bounds.least &&
               static_cast<double>(value) <= consumer.bounds.most);
    });
    if (wrong == values.end()) continue;
    std::string advice;
    if (consumer.is_unit_a_class && *wrong > 0)
      advice = fmt::format(
          "; class {} needs an output of at least {} units, but '{}' has {} (with `units: auto`, an output "
          "has one unit for each class)",
          *wrong, static_cast<int64_t>(*wrong) + 1, consumer.name, consumer.units);
    const int64_t sample = first + (wrong - values.begin()) / elements;
    throw UserError(fmt::format(
        "sample {} (counted from 0{}) of {} has the value {} for '{}', which takes values from {} to {}{}",
        sample, data.has_ids() ? ", " + data.sample_name(sample) : "", split, *wrong, consumer.name,
        consumer.bounds.least, consumer.bounds.most, advice));
  }
}

/// Returns the layer that reads this input as indices. If several layers read it as indices, returns the
/// layer with the smallest number of valid indices. Returns nullopt if no layer reads the input as indices.
std::optional<Consumer> consumer_of_input(const Graph& graph, int input) {
  const GraphNode* const reader = graph.reader_of_indices(input);
  if (!reader) return std::nullopt;
  return Consumer{reader->name, {0, static_cast<double>(*reader->layer->indices() - 1)}};
}

/// Returns the consumer of a column; nullopt if the consumer accepts any value.
std::optional<Consumer> consumer_of(const RunConfig& config, size_t column) {
  const size_t inputs = config.graph.inputs.size();
  if (column < inputs) return consumer_of_input(config.graph, config.graph.inputs[column]);
  if (column - inputs == config.heads.size())
    return Consumer{"weights", {0, std::numeric_limits<double>::infinity()}};
  const Head& head = config.heads[column - inputs];
  const TensorSpec& output = config.graph.spec(head.output);
  const auto bounds = head.loss->target_bounds(output);
  if (!bounds) return std::nullopt;
  const int64_t units = output.shape.columns();
  const bool is_unit_a_class = head.target.dtype == DType::int32 && bounds->most < static_cast<double>(units);
  return Consumer{config.graph.layer_name(head.output.node), *bounds, is_unit_a_class, units};
}

/// Returns the name of a column in messages, such as "the input 'x'".
std::string called(const RunConfig& config, const Dataset& data, size_t column) {
  const size_t inputs = config.graph.inputs.size();
  if (column < inputs) return fmt::format("the input '{}'", data.columns()[column].name);
  if (column - inputs == config.heads.size()) return "the row weights";
  return fmt::format("the target of '{}'",
                     config.graph.layer_name(config.heads[column - inputs].output.node));
}

/// Implements describe_not_finite() for one column, which must have the type float32.
std::string describe_not_finite_in(const RunConfig& config, const Dataset& data, size_t column,
                                   const Samples& samples, const std::string& split) {
  const int64_t elements = std::max<int64_t>(data.columns()[column].shape.elements(), 1);
  const auto block = static_cast<size_t>(std::max<int64_t>((int64_t{1} << 20) / elements, 1));
  std::vector<float> values;
  for (size_t first = 0; first < samples.size(); first += block) {
    const Samples part = samples.part(first, std::min(block, samples.size() - first));
    values.resize(part.size() * static_cast<size_t>(elements));
    data.read_column(column, part, values.data());
    const auto wrong =
        std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    if (wrong == values.end()) continue;
    const int64_t sample = part.rows[static_cast<size_t>((wrong - values.begin()) / elements)];
    return fmt::format("sample {} (counted from 0, {}) of {} has the value {} in {}", sample,
                       data.sample_name(sample), split, *wrong, called(config, data, column));
  }
  return "";
}

void check_from(const RunConfig& config, const Dataset& data, size_t first_column, const std::string& split) {
  for (size_t column = first_column; column < data.columns().size(); ++column) {
    const std::optional<Consumer> consumer = consumer_of(config, column);
    if (!consumer) continue;
    if (data.columns()[column].dtype == DType::int32) {
      check_column<int32_t>(data, column, *consumer, split);
    } else {
      check_column<float>(data, column, *consumer, split);
    }
  }
}

}  // namespace

void check_samples(const RunConfig& config, const Dataset& data, const std::string& split) {
  check_from(config, data, 0, split);
}

void check_targets_at_hand(const RunConfig& config, const Dataset& data, const std::string& split) {
  constexpr int64_t kMostElements = 1 << 20;
  int64_t elements = 0;
  for (size_t column = config.graph.inputs.size(); column < data.columns().size(); ++column)
    elements += data.columns()[column].shape.elements() * std::min(data.size(), kMostElements);
  if (data.in_memory() && elements <= kMostElements && data.size() <= kMostElements)
    check_from(config, data, config.graph.inputs.size(), split);
}

std::string describe_not_finite(const RunConfig& config, const Dataset& data, const Samples& samples,
                                const std::string& split) {
  std::string found;
  for (size_t column = 0; column < data.columns().size() && found.empty(); ++column)
    if (data.columns()[column].dtype == DType::float32)
      found = describe_not_finite_in(config, data, column, samples, split);
  return found;
}

std::string describe_not_finite(const RunConfig& config, const Dataset& data, const std::string& split,
                                size_t most_bytes) {
  const std::vector<int64_t> rows = row_numbers(0, data.size());
  std::string found;
  for (size_t column = 0; column < data.columns().size() && found.empty(); ++column) {
    const TensorSpec& spec = data.columns()[column];
    const auto row_bytes = static_cast<size_t>(spec.shape.elements()) * bytes_of(spec.dtype);
    if (spec.dtype == DType::float32 && row_bytes * rows.size() <= most_bytes)
      found = describe_not_finite_in(config, data, column, {rows}, split);
  }
  return found;
}

void check_readable(const Dataset& data, size_t most_bytes) {
  constexpr size_t kBlock = size_t{4} << 20;
  for (size_t column = 0; column < data.columns().size(); ++column) {
    // Skips columns that are in memory and are only converted by an affine map, because their conversion
    // cannot fail.
    if (data.in_memory() && data.stored_form(column)) continue;
    const TensorSpec& spec = data.columns()[column];
    const size_t row_bytes = static_cast<size_t>(spec.shape.elements()) * bytes_of(spec.dtype);
    const auto rows = static_cast<int64_t>(std::max<size_t>(1, kBlock / std::max<size_t>(1, row_bytes)));
    const int64_t blocks = (data.size() + rows - 1) / rows;
    const auto most = static_cast<int64_t>(std::max<size_t>(2, most_bytes / kBlock));
    const auto memory = allocate_bytes(static_cast<size_t>(std::min(rows, data.size())) * row_bytes);
    for (int64_t i = 0; i < std::min(blocks, most); ++i) {
      const int64_t block = blocks <= most ? i : i * (blocks - 1) / (most - 1);
      data.read_column(column, {row_numbers(block * rows, std::min(rows, data.size() - block * rows))},
                       memory.get());
    }
  }
}

}  // namespace dtrain
