// dtrain new, for a CSV file.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "new_config.h"
#include "picture_look.h"
#include "table_plan.h"
#include "text.h"

namespace dtrain {

namespace {

using ColumnKind = ColumnProfile::Kind;

std::string yaml_columns(const TableProfile& table, const std::vector<size_t>& columns) {
  std::vector<std::string> names;
  for (const size_t column : columns) names.push_back(yaml_column(table, column));
  return fmt::format("[{}]", fmt::join(names, ", "));
}

bool is_all_different(const ColumnProfile& column) {
  return column.distinct && column.missing == 0 && column.kind != ColumnKind::empty;
}

/// The rows' numbers, which pandas' to_csv() writes under no name, and which it reads under "Unnamed: 0".
bool is_index(const TableProfile& table, const ColumnProfile& column) {
  return table.header && (column.name.empty() || column.name.starts_with("Unnamed: ")) &&
         is_all_different(column) && column.kind == ColumnKind::number && column.whole;
}

bool is_id(const ColumnProfile& column, size_t place) {
  if (!is_all_different(column)) return false;
  const std::string name = lower(column.name);
  if (name == "id" || name == "uuid" || name == "guid" || name == "index" || name == "key" ||
      name.ends_with("_id") || name.ends_with(" id") ||
      (column.name.size() > 2 && column.name.ends_with("Id")))
    return column.kind == ColumnKind::text || column.whole;
  return column.kind == ColumnKind::text && (name == "name" || place == 0);
}

TablePlan plan_table(const TableProfile& table, const std::string& wanted) {
  TablePlan plan;
  plan.target = find_target(table, wanted);
  plan_target(table, plan);
  const auto drop = [&](size_t i, const std::string& why) {
    plan.drop.push_back(i);
    plan.notes.push_back(fmt::format("{} is left out: {}", called(table, i), why));
  };
  constexpr size_t kMostCategories = 50;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    if (i == plan.target) continue;
    if (is_index(table, column)) {
      drop(i, "it numbers the rows, as tables are saved with an index");
    } else if (!plan.id && is_id(column, i)) {
      plan.id = i;
    } else if (is_id(column, i)) {
      drop(i, "it names the rows, as the id does");
    } else if (column.kind == ColumnKind::empty) {
      drop(i, "it is empty");
    } else if (column.kind == ColumnKind::date) {
      drop(i, "dates are no numbers; make columns of what matters of them (year, weekday)");
    } else if (!column.many_values && column.values.size() == 1) {
      drop(i, "all rows have the same value");
    } else if (column.kind == ColumnKind::text &&
               (column.many_values || column.values.size() > kMostCategories)) {
      drop(i, fmt::format("it is text with {} different values",
                          column.many_values ? fmt::format("more than {}", TableProfile::kMostValues)
                                             : format_count(static_cast<int64_t>(column.values.size()))));
    } else {
      plan.features.push_back(i);
      if (column.kind == ColumnKind::text) plan.categories.push_back(i);
      plan.missing_numbers =
          plan.missing_numbers || (column.kind == ColumnKind::number && column.missing > 0);
      plan.width += column.kind == ColumnKind::text ? static_cast<int64_t>(column.values.size()) : 1;
    }
  }
  if (plan.features.empty())
    throw UserError("the table has no column to predict from: numbers, or text with a few different values");
  return plan;
}

std::string csv_reader(const TableProfile& table, const TablePlan& plan, const std::string& path) {
  std::string text = fmt::format("  train:\n    csv:\n      file: {}\n", yaml_string(path));
  if (table.delimiter != ',')
    text += fmt::format("      delimiter: {}\n", Json(std::string(1, table.delimiter)).dump());
  text += fmt::format("      header: {}\n", table.header);
  text += fmt::format(
      "      target: {:<24}  # what is predicted\n",
      !table.header && plan.target + 1 == table.columns.size() ? "-1" : yaml_column(table, plan.target));
  if (plan.id)
    text += fmt::format("      id: {:<28}  # no feature: goes along to what `dtrain predict` writes\n",
                        yaml_column(table, *plan.id));
  if (!plan.drop.empty()) text += fmt::format("      drop: {}\n", yaml_columns(table, plan.drop));
  std::vector<size_t> categories = plan.categories;
  if (plan.names_of_target) categories.push_back(plan.target);
  if (!categories.empty())
    text += fmt::format("      categories: {}  # names: 0 or 1 for each of a feature's values\n",
                        yaml_columns(table, categories));
  if (plan.missing_numbers)
    text += "      fill: median                      # what stands where a number is missing\n";
  return text;
}

std::string described(const TableProfile& table, const TablePlan& plan) {
  const ColumnProfile& target = table.columns[plan.target];
  return fmt::format("{} and {}. Predicts {}: {}", format_plural(table.rows, "row"),
                     format_plural(static_cast<int64_t>(table.columns.size()), "column"),
                     called(table, plan.target),
                     plan.regression ? fmt::format("a number from {:g} to {:g}", target.least, target.most)
                                     : "one of " + describe_classes(target.values, target.counts));
}

int64_t batch_size_for(int64_t rows) {
  return rows < 2'000 ? 16 : rows < 20'000 ? 32 : rows < 200'000 ? 128 : 512;
}

}  // namespace

std::string table_config(const NewOptions& options) {
  const TableProfile table = profile_csv(options.data);
  if (const auto pictures = find_named_pictures(table, options.data))
    return picture_table_config(options, table, *pictures);
  const TablePlan plan = plan_table(table, options.target);
  std::vector<std::string> found = {described(table, plan)};
  found.insert(found.end(), plan.notes.begin(), plan.notes.end());
  std::string text = config_head(options, found);
  text += fmt::format("model:\n  inputs: {{features: [{}]}}              # {}\n  layers:\n", plan.width,
                      plan.categories.empty()
                          ? "the columns that are neither target nor id nor dropped"
                          : "a number for each column, and for each value of columns of text");
  text += "    - dense: {units: 64, activation: relu}\n    - dense: {units: 64, activation: relu}\n";
  if (plan.regression) {
    text += fmt::format(
        "    # The number itself, which is its mean before anything is learned.\n"
        "    - dense: {{units: 1, bias_initializer: {{constant: {{value: {:.6g}}}}}}}\n\n",
        table.columns[plan.target].mean);
  } else {
    text += fmt::format("    - dense: {{units: {}}}                   # a score for each class\n\n",
                        plan.classes);
  }
  text += "dataset:\n" + csv_reader(table, plan, path_from_config(options, options.data));
  const char* stratify = plan.regression ? "" : ", stratify: true";
  text += fmt::format(
      "  # Drawn by the seed; rows of one are in no other.\n"
      "  validation: {{split: {{of: train, fraction: 0.15{0}}}}}\n"
      "  test:       {{split: {{of: train, fraction: 0.15{0}}}}}\n"
      "  transforms:\n"
      "    - standardize                   # every feature has mean 0 and deviation 1\n"
      "  cache: memory\n\n",
      stratify);
  text += fmt::format(
      "train:\n  epochs: 200                         # at most: see early_stopping\n  batch_size: {}\n",
      batch_size_for(table.rows));
  if (plan.regression) {
    text += "  loss: mean_squared_error\n  metrics: [mean_absolute_error]\n";
  } else {
    text +=
        "  loss: {sparse_categorical_crossentropy: {from_logits: true}}\n"
        "  metrics: [sparse_categorical_accuracy, confusion_matrix]\n";
    if (plan.rare)
      text += "  class_weight: balanced              # some classes are rare: their rows count more\n";
  }
  return text +
         "  optimizer: {adam: {learning_rate: 0.001}}\n"
         "  callbacks: [{early_stopping: {monitor: val_loss, patience: 20}}]\n\n"
         "checkpoint: {best: {monitor: val_loss}}   # `dtrain predict --best` takes it\n";
}

}  // namespace dtrain
