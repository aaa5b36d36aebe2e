#include "run/row_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/name_list.h"
#include "data/dataset.h"
#include "data/loader/sample_weights.h"
#include "data/readers/reader.h"
#include "nn/divisors.h"
#include "run/weighted_dataset.h"

namespace dtrain {

namespace {

/// Returns whether the split has sample weights.
bool has_weights(const std::optional<SplitSpec>& split) {
  return split && split->reader && split->reader->has_weights();
}

int64_t classes_of(const RunConfig& config) {
  return std::max<int64_t>(config.graph.spec(config.heads[0].output).shape.columns(), 2);
}

/// Returns the shape of an output without its last axis.
Shape rows_shape(const Shape& output) {
  std::vector<int64_t> extents = output.extents();
  if (!extents.empty()) extents.pop_back();
  return Shape(std::move(extents));
}

std::optional<int64_t> number_of(const std::string& text) {
  if (text.empty() || text.size() > 9 ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return std::stoll(text);
}

std::optional<ClassWeights> read_class_weights(const ConfigNode& node, Diagnostics& diagnostics) {
  ClassWeights all{.mark = node.mark()};
  if (node.is_scalar() && node.text() == "balanced") {
    all.balanced = true;
    return all;
  }
  if (!node.is_mapping() || node.entries().empty()) {
    diagnostics.error(node, "class_weight: expected 'balanced', or a mapping from classes to weights");
    return std::nullopt;
  }
  for (const auto& [name, value] : node.entries()) {
    double weight = 0;
    if (!Codec<double>::parse(value, "class_weight", weight, diagnostics)) continue;
    if (!(weight >= 0))
      diagnostics.error(value,
                        fmt::format("class_weight: expected a number of at least 0, found {}", weight));
    all.weights.emplace_back(name.text(), weight);
  }
  return all;
}

/// Reports an error and returns false if class weights do not apply to the run.
bool check_class_weights(const RunConfig& config, const ClassWeights& weights, Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& why) {
    diagnostics.error(weights.mark, "class_weight: class weights can only be used " + why);
    return false;
  };
  if (config.heads.size() > 1) return refuse("for models with one output");
  const Head& head = config.heads[0];
  if (!head.loss || config.graph.nodes.empty()) return true;
  if (!head.loss->tells_classes()) return refuse("with classification losses");
  if (head.loss->is_of_samples())
    return refuse(
        "with losses that have one value per prediction (for example, per pixel), but this loss has one "
        "value per sample");
  const Shape& shape = config.graph.spec(head.output).shape;
  if (head.loss->is_of_columns() && shape.rank() > 0 && shape.back() != 1)
    return refuse(
        "with losses whose target is one class, but with this loss each output column has a separate yes/no "
        "target");
  return true;
}

/// Returns the mask of the only output, which has class weights. Returns nullopt if the output has no mask,
/// or if the mask is computed from the output of a layer and is therefore not known before the model runs.
std::optional<WeightColumns::Mask> mask_of_rows(const RunConfig& config) {
  const Head& head = config.heads[0];
  const auto source = head.mask ? source_of(config.graph, *head.mask) : std::nullopt;
  if (!source) return std::nullopt;
  return WeightColumns::Mask{source->input, source->padding, head.mask->shape.elements()};
}

/// Counts the rows of each class, without masked rows. A row's class is its target: a class index, the index
/// of the largest of several columns, or 0 or 1.
std::vector<double> count_classes(const Dataset& data, const WeightedDataset::Classes& classes, size_t count,
                                  const std::optional<WeightColumns::Mask>& mask) {
  std::vector<double> counts(count, 0.0);
  const TensorSpec& target = data.columns()[classes.target];
  int64_t elements = std::max<int64_t>(target.shape.elements(), 1);
  if (mask) elements = std::max(elements, data.columns()[mask->column].shape.elements());
  const int64_t block = std::max<int64_t>((int64_t{1} << 20) / elements, 1);
  std::vector<float> values;
  for (int64_t first = 0; first < data.size(); first += block) {
    std::vector<int64_t> rows(static_cast<size_t>(std::min(block, data.size() - first)));
    std::iota(rows.begin(), rows.end(), first);
    values.resize(rows.size() * static_cast<size_t>(target.shape.elements()));
    data.read_column(classes.target, {rows}, values.data());
    const size_t total = values.size() / static_cast<size_t>(classes.columns);
    std::vector<float> valid(total, 1.0f);
    if (mask) valid = read_masks(data, *mask, first, static_cast<int64_t>(rows.size()));
    for (size_t row = 0; row < total; ++row) {
      if (valid[row * valid.size() / total] == 0) continue;
      const int64_t number = classes.of(target.dtype, values.data(), row);
      if (number >= 0 && number < static_cast<int64_t>(count)) counts[static_cast<size_t>(number)] += 1;
    }
  }
  return counts;
}

/// Returns rows / (number of non-empty classes * rows of this class) for each class, like scikit-learn's
/// "balanced".
std::vector<float> balanced(const std::vector<double>& counts) {
  const double rows = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto present = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](double count) { return count > 0; }));
  std::vector<float> weights;
  for (const double count : counts)
    weights.push_back(count > 0 ? static_cast<float>(rows / (present * count)) : 1.0f);
  return weights;
}

std::vector<float> weights_by_class(const RunConfig& config, const Dataset& data,
                                    const WeightedDataset::Classes& classes) {
  const auto count = static_cast<size_t>(classes_of(config));
  if (config.class_weights->balanced) {
    try {
      return balanced(count_classes(data, classes, count, mask_of_rows(config)));
    } catch (const UserError& error) {
      throw UserError(located(config.dataset.train->mark, error.what()));
    }
  }
  const std::vector<std::string> names = class_names(config, data.facts(), 0);
  std::vector<float> weights(count, 1.0f);
  std::map<size_t, std::string> given;  // for each class index, the name that the user has written
  for (const auto& [name, weight] : config.class_weights->weights) {
    const auto named = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    const auto number = number_of(name);
    if (named == names.size() && !(number && *number < classes_of(config)))
      throw UserError(
          located(config.class_weights->mark,
                  fmt::format("class_weight: there is no class '{}'{}; there are {} classes{}", name,
                              suggestion(name, names), count,
                              names.empty() ? ", numbered from 0" : ", " + list_some(names, 10))));
    const size_t index = named < names.size() ? named : static_cast<size_t>(*number);
    const auto [other, is_new] = given.emplace(index, name);
    if (!is_new)
      throw UserError(located(
          config.class_weights->mark,
          fmt::format("class_weight: '{}' and '{}' are the same class; give it once", other->second, name)));
    weights.at(index) = static_cast<float>(weight);
  }
  if (std::all_of(weights.begin(), weights.end(), [](float weight) { return weight == 0; }))
    throw UserError(
        located(config.class_weights->mark,
                "class_weight: at least one class must have a weight above 0, but all have the weight 0"));
  return weights;
}

}  // namespace

std::vector<std::string> class_names(const RunConfig& config, const DataFacts& facts, size_t head) {
  const std::string& target = config.heads[head].target.name;
  const auto found = facts.source.class_names.find(target.empty() ? "target" : target);
  return found == facts.source.class_names.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::string> class_warnings(const RunConfig& config, const DataFacts& facts) {
  std::vector<std::string> warnings;
  for (size_t head = 0; head < config.heads.size(); ++head) {
    const std::vector<std::string> names = class_names(config, facts, head);
    const std::string layer = config.graph.layer_name(config.heads[head].output.node);
    const auto units = static_cast<size_t>(config.graph.spec(config.heads[head].output).shape.columns());
    if (names.size() == 1)
      warnings.push_back(fmt::format(
          "the target of '{}' has only one class, '{}', so the model cannot learn to distinguish classes",
          layer, names[0]));
    else if (config.heads[head].loss && config.heads[head].loss->tells_classes() && units > names.size() &&
             !names.empty())
      warnings.push_back(fmt::format("'{}' has {} units, but its target has {} classes ({})", layer, units,
                                     names.size(), list_some(names, 10)));
  }
  return warnings;
}

std::vector<std::string> target_columns(const RunConfig& config, size_t head) {
  const auto& train = config.dataset.train;
  const std::vector<std::string>& names = config.dataset.facts.source.fields.targets;
  std::vector<int64_t> columns;  // number of target columns of each head: 0 if the target is an input
  for (const Head& one : config.heads)
    if (!train || !one.loss)
      columns.push_back(1);
    else if (train->find_input_target(one.target.name))
      columns.push_back(0);
    else
      columns.push_back(rows_of_windows(train->windows, {one.target}, true).front().shape.elements());
  // If the sum of the counts differs from the number of names, a target was made from one column by a
  // transform, for example by one_hot. Each target then has one column.
  if (std::accumulate(columns.begin(), columns.end(), int64_t{0}) != static_cast<int64_t>(names.size()))
    for (int64_t& count : columns) count = std::min<int64_t>(count, 1);
  const auto before = static_cast<size_t>(
      std::accumulate(columns.begin(), columns.begin() + static_cast<ptrdiff_t>(head), int64_t{0}));
  std::vector<std::string> found;
  for (size_t i = before; i < before + static_cast<size_t>(columns[head]) && i < names.size(); ++i)
    found.push_back(names[i]);
  return found;
}

void set_row_weights(RunConfig& config, Diagnostics& diagnostics) {
  const DatasetSpec& dataset = config.dataset;
  const bool by_sample =
      has_weights(dataset.train) || has_weights(dataset.validation) || has_weights(dataset.test);
  if (!config.train.class_weight.is_null())
    config.class_weights = read_class_weights(config.train.class_weight, diagnostics);
  if (config.class_weights && !check_class_weights(config, *config.class_weights, diagnostics)) return;
  if (!by_sample && !config.class_weights) return;
  TensorSpec weights{"weights", {}, DType::float32};
  if (config.class_weights && !config.graph.nodes.empty())
    weights.shape = rows_shape(config.graph.spec(config.heads[0].output).shape);
  for (Head& head : config.heads) head.weights = weights;
}

Json class_weight_json_schema() {
  const Json by_class =
      Json::object().set("type", "object").set("additionalProperties", Json::object().set("type", "number"));
  return Json::object().set("anyOf", Json::array()
                                         .push(Json::object().set("const", "balanced"))
                                         .push(by_class)
                                         .push(Json::object().set("type", "null")));
}

std::shared_ptr<const Dataset> with_weights(std::shared_ptr<const Dataset> data, const RunConfig& config,
                                            const Dataset* counted) {
  const auto& spec = config.heads[0].weights;
  if (!spec) return data;
  WeightedDataset::Classes classes{.target = config.graph.inputs.size()};
  if (config.class_weights && counted) {
    const TensorSpec& target = data->columns()[classes.target];
    if (target.dtype == DType::float32 && target.shape.rank() > 0) classes.columns = target.shape.back();
    classes.weights = weights_by_class(config, *counted, classes);
  }
  const size_t own = config.graph.inputs.size() + config.heads.size();
  return std::make_shared<WeightedDataset>(std::move(data), *spec, own, std::move(classes));
}

}  // namespace dtrain
