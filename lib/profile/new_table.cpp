// Implements `dtrain new` for a CSV file.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/text.h"
#include "profile/new_config.h"
#include "profile/new_recipe.h"
#include "profile/new_text.h"
#include "profile/picture_look.h"
#include "profile/table_plan.h"

namespace dtrain {

namespace {

using Use = ColumnRole::Use;

std::string yaml_columns(const TableProfile& table, const std::vector<size_t>& columns) {
  std::vector<std::string> names;
  for (const size_t column : columns) names.push_back(yaml_column(table, column));
  return fmt::format("[{}]", fmt::join(names, ", "));
}

/// Returns true if a feature that is a number or a date has missing values.
bool has_missing_numbers(const TableProfile& table, const TablePlan& plan) {
  const std::vector<size_t> features = plan.places(Use::feature);
  return std::any_of(features.begin(), features.end(), [&](size_t i) {
    const ColumnMeaning meaning = plan.columns[i].meaning;
    return meaning != ColumnMeaning::categories && meaning != ColumnMeaning::free_text &&
           table.columns[i].missing > 0;
  });
}

/// Returns the options for the notation of the file: the delimiter, the format of numbers, and texts for
/// missing values.
std::string notation_text(const TableProfile& table) {
  const auto quoted = [](char c) { return Json(std::string(1, c)).dump(); };
  std::string text;
  if (table.format.delimiter != ',')
    text += fmt::format("      delimiter: {}\n", yaml_delimiter(table.format.delimiter));
  if (table.format.comment) text += fmt::format("      comment: {}\n", quoted(*table.format.comment));
  if (table.notation.decimal != '.')
    text += fmt::format("      decimal: {}\n", quoted(table.notation.decimal));
  if (table.notation.thousands)
    text += fmt::format("      thousands: {}\n", quoted(*table.notation.thousands));
  std::vector<std::string> names;
  for (const std::string& name : table.notation.na_values) names.push_back(yaml_string(name));
  if (!names.empty())
    text += fmt::format("      na_values: [{}]  # missing values, in addition to the usual ones\n",
                        fmt::join(names, ", "));
  return text;
}

/// Returns the options for columns of dates, for columns of amounts, and for missing numbers.
std::string columns_text(const TableProfile& table, const TablePlan& plan) {
  std::string text;
  std::vector<std::string> dates;
  for (const size_t i : plan.features(ColumnMeaning::date))
    dates.push_back(fmt::format("{}: [{}]", yaml_column(table, i),
                                fmt::join(parts_of_dates(table.columns[i].dates), ", ")));
  if (!dates.empty()) text += fmt::format("      dates: {{{}}}\n", fmt::join(dates, ", "));
  std::vector<size_t> amounts = plan.features(ColumnMeaning::amount);
  if (table.columns[plan.target.column].is_amount) amounts.push_back(plan.target.column);
  if (!amounts.empty()) text += fmt::format("      amounts: {}\n", yaml_columns(table, amounts));
  if (has_missing_numbers(table, plan))
    text += "      fill: median                      # replaces missing numbers\n";
  if (const auto marked = plan.indicators(table); !marked.empty())
    text += fmt::format("      indicators: {}  # adds a 0/1 feature that marks missing numbers\n",
                        yaml_columns(table, marked));
  if (table.columns[plan.target.column].missing > 0)
    text += "      missing_target: skip              # rows without a target are left out\n";
  return text;
}

std::string csv_reader(const TableProfile& table, const TablePlan& plan, const std::string& path) {
  const size_t target = plan.target.column;
  std::string text = fmt::format("  train:\n    csv:\n      file: {}\n", yaml_string(path));
  text += notation_text(table);
  text += fmt::format("      header: {}\n", table.header);
  text +=
      fmt::format("      target: {:<24}  # the column to predict\n",
                  !table.header && target + 1 == table.columns.size() ? "-1" : yaml_column(table, target));
  for (const size_t id : plan.places(Use::id))
    text +=
        fmt::format("      id: {:<28}  # not a feature: `dtrain predict` writes it with the predictions\n",
                    yaml_column(table, id));
  if (const auto drop = plan.places(Use::left_out); !drop.empty())
    text += fmt::format("      drop: {}\n", yaml_columns(table, drop));
  if (const auto words = plan.text())
    text += fmt::format("      text: {{{}: {{tokens: words, vocabulary: {}}}}}\n", yaml_column(table, *words),
                        kNewVocabulary);
  std::vector<size_t> categories = plan.features(ColumnMeaning::categories);
  const bool has_categories = !categories.empty();
  if (plan.target.names_are_numbers) categories.push_back(target);
  if (!categories.empty())
    text +=
        fmt::format("      categories: {}  # values are names, not numbers; features are one-hot encoded\n",
                    yaml_columns(table, categories));
  if (has_categories)
    text +=
        "      unknown: other                    # a value that is not in this file belongs to no category; "
        "with 'error', such a value is an error\n";
  return text + columns_text(table, plan);
}

std::string described(const TableProfile& table, const TargetPlan& plan) {
  const ColumnProfile& target = table.columns[plan.column];
  return fmt::format("{} and {}. Predicts {}: {}", format_plural(table.rows, "row"),
                     format_plural(static_cast<int64_t>(table.columns.size()), "column"),
                     called(table, plan.column),
                     plan.regression ? fmt::format("a number from {:g} to {:g}", target.least, target.most)
                                     : "one of " + describe_classes(target.values, target.counts));
}

/// Returns the lines in the section of a split that make each sample a window of rows.
std::string windows_text(const TableProfile& table, const TableSeries& series) {
  std::string keys;
  if (series.by) keys = fmt::format(", by: {}", yaml_column(table, *series.by));
  return fmt::format(
      "    # The inputs of a sample are {} rows, with past values of the target; its targets are the values "
      "of the next {} rows.\n    windows: {{length: {}, horizon: {}{}, time: {}}}\n",
      series.length, series.horizon, series.length, series.horizon, keys, yaml_column(table, series.time));
}

std::string described(const TableProfile& table, const TableSeries& series) {
  return fmt::format(
      "The rows are {} in time, one row every {}. A sample predicts {} from the {} before them: "
      "see 'windows'",
      series.by ? fmt::format("{} series ({})", format_count(series.series), called(table, *series.by))
                : "one series",
      describe_interval(series.days), format_plural(series.horizon, "row"),
      format_plural(series.length, "row"));
}

std::string series_model_text(const TableSeries& series) {
  return fmt::format(
      "model:\n  inputs: {{features: auto}}              # [rows of a window, columns in the dataset below]\n"
      "  layers:\n    - lstm: {{units: 64}}\n    - dropout: {{rate: 0.2}}\n"
      "    - dense: {{units: auto}}              # {}\n\n",
      series.horizon == 1 ? "the next value" : fmt::format("the next {} values", series.horizon));
}

std::string model_text(const TableProfile& table, const TablePlan& plan) {
  const std::string last = fmt::format("    - dense: {{units: auto}}              # {}\n",
                                       plan.target.regression ? "the number" : "a score for each class");
  if (const auto words = plan.text()) return text_model(length_for_words(table.columns[*words].words), last);
  std::string text =
      "model:\n  inputs: {features: auto}              # the number of features in the dataset below\n"
      "  layers:\n";
  for (int layer = 0; layer < 2; ++layer)
    text += "    - dense: {units: 128, activation: relu}\n    - dropout: {rate: 0.3}\n";
  return text + last + "\n";
}

std::string transforms_text(const TablePlan& plan) {
  if (plan.target.regression)
    return fmt::format(
        "  transforms:\n"
        "    # All columns get mean 0 and standard deviation 1. Predictions are in the target's original "
        "unit.\n"
        "    - standardize: {{of: [{}target]}}\n",
        plan.text() ? "" : "features, ");
  if (plan.text()) return "";
  return "  transforms:\n    - standardize                   # every feature gets mean 0 and standard "
         "deviation 1\n";
}

std::string series_dataset_text(const NewOptions& options, const TableProfile& table, const TablePlan& plan) {
  return "dataset:\n" + csv_reader(table, plan, path_from_config(options, options.data)) +
         windows_text(table, *plan.series) +
         "  # Each series is split in time: its first rows are train, then validation, then test.\n"
         "  validation: {split: {of: train, fraction: 0.15}}\n"
         "  test:       {split: {of: train, fraction: 0.15}}\n"
         "  transforms:\n"
         "    # All columns get mean 0 and standard deviation 1. Predictions are in the target's original "
         "unit.\n"
         "    - standardize: {of: [features, target]}\n"
         "  cache: memory\n\n";
}

std::string dataset_text(const NewOptions& options, const TableProfile& table, const TablePlan& plan) {
  if (plan.series) return series_dataset_text(options, table, plan);
  return "dataset:\n" + csv_reader(table, plan, path_from_config(options, options.data)) +
         fmt::format(
             "  # The splits are disjoint. They have their own seed, so that runs with other seeds use the "
             "same splits.\n"
             "  validation: {{split: {{of: train, fraction: 0.15{0}, seed: 1}}}}\n"
             "  test:       {{split: {{of: train, fraction: 0.15{0}, seed: 1}}}}\n",
             plan.target.stratify ? ", stratify: true" : "") +
         transforms_text(plan) + "  cache: memory\n\n";
}

/// Returns the lines of the loss and the metrics for a numeric target.
std::string regression_losses(const TableProfile& table, size_t target) {
  const std::string unit = fmt::format(
      "The loss and mean_absolute_error are in standard deviations of {} (one is about {:.5g}). r2_score",
      called(table, target), table.columns[target].deviation);
  return "  # " + one_line(unit) +
         "\n"
         "  # is the same in any unit: 1 is perfect, 0 is no better than predicting the mean.\n"
         "  loss: mean_squared_error\n"
         "  metrics: [mean_absolute_error, r2_score]\n";
}

std::string train_text(const TableProfile& table, const TargetPlan& target) {
  const TrainingLength length = length_for_rows(table.rows);
  std::string text = fmt::format("train:\n{}", epochs_text(length));
  if (target.regression) {
    text += regression_losses(table, target.column);
  } else {
    text +=
        "  loss: {sparse_categorical_crossentropy: {from_logits: true}}\n"
        "  metrics: [sparse_categorical_accuracy, confusion_matrix]\n";
    if (target.rare) text += kClassWeightText;
  }
  return text + schedule_text(length);
}

}  // namespace

NewConfig table_config(const NewOptions& options) {
  const TableProfile table = profile_csv(options.data);
  if (const auto pictures = find_named_pictures(table, options.data))
    return picture_table_config(options, table, *pictures);
  const TablePlan plan = plan_table(table, options.data, options.target);
  NewConfig config;
  config.warnings = table.warnings;
  config.warnings.insert(config.warnings.end(), plan.warnings.begin(), plan.warnings.end());
  config.notes = {described(table, plan.target)};
  if (!plan.target.note.empty()) config.notes.push_back(plan.target.note);
  if (plan.series) config.notes.push_back(described(table, *plan.series));
  config.table = table_of_columns(table, plan);
  config.columns = json_of_columns(table, plan);
  config.text = config_head(options, config) +
                (plan.series ? series_model_text(*plan.series) : model_text(table, plan)) +
                dataset_text(options, table, plan) + train_text(table, plan.target);
  return config;
}

}  // namespace dtrain
