// dtrain new, for a CSV file.
#include <algorithm>
#include <optional>
#include <utility>

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
  return column.kind == ColumnKind::text && column.odd_text.empty() && (name == "name" || place == 0);
}

constexpr size_t kMostCategories = 50;

bool has_few_values(const ColumnProfile& column) {
  return !column.many_values && column.values.size() <= kMostCategories;
}

/// "'colour' (2 values), 'city' (30 values)"; of many the first ones.
std::string describe_categories(const TableProfile& table, const std::vector<size_t>& categories) {
  constexpr size_t kMostShown = 12;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(categories.size(), kMostShown); ++i)
    shown.push_back(fmt::format(
        "{} ({})", called(table, categories[i]),
        format_plural(static_cast<int64_t>(table.columns[categories[i]].values.size()), "value")));
  if (categories.size() > kMostShown) shown.emplace_back("...");
  return fmt::format("{}", fmt::join(shown, ", "));
}

/// Why a column that is no id is no feature either; "" where it is one.
std::string why_no_feature(const TableProfile& table, const ColumnProfile& column) {
  if (is_index(table, column)) return "it numbers the rows, as tables are saved with an index";
  if (column.kind == ColumnKind::empty) return "it is empty";
  if (column.kind == ColumnKind::date)
    return "dates are no numbers; make columns of what matters of them (year, weekday)";
  if (!column.many_values && column.values.size() == 1) return "all rows have the same value";
  if (column.kind == ColumnKind::text && !has_few_values(column))
    return fmt::format("it is text with {} different values",
                       column.many_values ? fmt::format("more than {}", TableProfile::kMostValues)
                                          : format_count(static_cast<int64_t>(column.values.size())));
  return "";
}

void add_feature(const ColumnProfile& column, size_t place, TablePlan& plan) {
  plan.features.push_back(place);
  if (column.kind == ColumnKind::text) plan.categories.push_back(place);
  plan.missing_numbers = plan.missing_numbers || (column.kind == ColumnKind::number && column.missing > 0);
  plan.width += column.kind == ColumnKind::text ? static_cast<int64_t>(column.values.size()) : 1;
}

/// A column that would be one of numbers but for `odd`, which says why it is none.
void add_odd(const TableProfile& table, size_t place, const std::string& odd, TablePlan& plan) {
  const ColumnProfile& column = table.columns[place];
  std::string what = "is left out";
  if (has_few_values(column) && is_most(column.numbers, column)) {
    add_feature(column, place, plan);
    what = fmt::format("becomes 0 or 1 for each of {}, though most are numbers",
                       format_plural(static_cast<int64_t>(column.values.size()), "value"));
  } else {
    plan.drop.push_back(place);
  }
  plan.warnings.push_back(
      fmt::format("{} {}: {}; correct that, or leave it empty, and write a new configuration",
                  called(table, place), what, odd));
}

void add_id(const TableProfile& table, size_t place, const std::string& odd, TablePlan& plan) {
  plan.id = place;
  plan.notes.push_back(fmt::format("{} names the rows: it is no feature", called(table, place)));
  if (!odd.empty())
    plan.warnings.push_back(fmt::format("{}, which names the rows: {}", called(table, place), odd));
}

TablePlan plan_table(const TableProfile& table, const std::string& wanted) {
  TablePlan plan;
  plan.target = find_target(table, wanted);
  plan_target(table, plan);
  plan.warnings = std::exchange(plan.notes, {});  // what speaks against the target
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    if (i == plan.target) continue;
    const std::string odd = why_no_numbers(column);
    const bool names_rows = is_id(column, i);
    const std::string why = names_rows ? "it names the rows, as the id does" : why_no_feature(table, column);
    if (!plan.id && names_rows) {
      add_id(table, i, odd, plan);
    } else if (!odd.empty() && !names_rows) {
      add_odd(table, i, odd, plan);
    } else if (why.empty()) {
      add_feature(column, i, plan);
    } else {
      plan.drop.push_back(i);
      plan.notes.push_back(fmt::format("{} is left out: {}", called(table, i), why));
    }
  }
  if (plan.features.empty()) {
    std::vector<std::string> why = plan.notes;
    why.insert(why.end(), plan.warnings.begin(), plan.warnings.end());
    throw UserError(fmt::format(
        "the table has no column to predict from: numbers, or text with a few different values{}{}",
        why.empty() ? "" : "; ", fmt::join(why, "; ")));
  }
  if (!plan.categories.empty())
    plan.notes.push_back("text becomes features of 0 and 1, one for each value: " +
                         describe_categories(table, plan.categories));
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
  if (!plan.categories.empty())
    text +=
        "      unknown: other                    # a value that this file lacks is none of them; error: "
        "refused\n";
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

std::string model_text(const TablePlan& plan) {
  std::string text = fmt::format(
      "model:\n  inputs: {{features: [{}]}}              # {}\n  layers:\n", plan.width,
      plan.categories.empty() ? "the columns that are neither target nor id nor dropped"
                              : "a number for each column, and for each value of columns of text");
  text += "    - dense: {units: 64, activation: relu}\n    - dense: {units: 64, activation: relu}\n";
  if (plan.regression) return text + "    - dense: {units: 1}                   # the number\n\n";
  return text + fmt::format("    - dense: {{units: {}}}                   # a score for each class\n\n",
                            plan.classes);
}

std::string dataset_text(const NewOptions& options, const TableProfile& table, const TablePlan& plan) {
  return "dataset:\n" + csv_reader(table, plan, path_from_config(options, options.data)) +
         fmt::format(
             "  # Drawn by the seed; rows of one are in no other.\n"
             "  validation: {{split: {{of: train, fraction: 0.15{0}}}}}\n"
             "  test:       {{split: {{of: train, fraction: 0.15{0}}}}}\n"
             "  transforms:\n",
             plan.stratify ? ", stratify: true" : "") +
         (plan.regression
              ? "    # All have mean 0 and deviation 1, whatever their unit. Predictions are in the target's "
                "own.\n"
                "    - standardize: {of: [features, target]}\n"
              : "    - standardize                   # every feature has mean 0 and deviation 1\n") +
         "  cache: memory\n\n";
}

/// The lines of the loss and the metrics for a target that is a number.
std::string regression_losses(const TableProfile& table, const TablePlan& plan) {
  const std::string unit = fmt::format(
      "The loss and mean_absolute_error are in standard deviations of {}, each about {:.5g}; r2_score",
      called(table, plan.target), table.columns[plan.target].deviation);
  return "  # " + one_line(unit) +
         "\n"
         "  # is the same in any unit: 1 is perfect, 0 is no better than the mean.\n"
         "  loss: mean_squared_error\n"
         "  metrics: [mean_absolute_error, r2_score]\n";
}

std::string train_text(const TableProfile& table, const TablePlan& plan) {
  std::string text = fmt::format(
      "train:\n  epochs: 200                         # at most: see early_stopping\n  batch_size: {}\n",
      batch_size_for(table.rows));
  if (plan.regression) {
    text += regression_losses(table, plan);
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

}  // namespace

NewConfig table_config(const NewOptions& options) {
  const TableProfile table = profile_csv(options.data);
  if (const auto pictures = find_named_pictures(table, options.data))
    return picture_table_config(options, table, *pictures);
  NewConfig config{"", {}, table.warnings};
  const TablePlan plan = plan_table(table, options.target);
  config.notes = {described(table, plan)};
  config.notes.insert(config.notes.end(), plan.notes.begin(), plan.notes.end());
  config.warnings.insert(config.warnings.end(), plan.warnings.begin(), plan.warnings.end());
  config.text = config_head(options, config) + model_text(plan) + dataset_text(options, table, plan) +
                train_text(table, plan);
  return config;
}

}  // namespace dtrain
