// dtrain new: a commented configuration for a CSV file or a folder of pictures, after a look at it.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/new_file.h"
#include "base/paths.h"
#include "commands.h"
#include "console.h"
#include "csv_look.h"
#include "options.h"
#include "picture_look.h"
#include "text.h"
#include "train/run_config_parser.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

struct NewOptions {
  OutputOptions output;
  std::string data, target, file;
};

using ColumnKind = LookedAtColumn::Kind;

/// As YAML has it, also within brackets: plain where nothing can be meant by it, else in quotes as JSON has.
std::string yaml_string(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-';
  };
  constexpr std::array<std::string_view, 12> kMeantOtherwise{"true", "false", "yes", "no",   "on",  "off",
                                                             "null", "y",     "n",   "True", "inf", "nan"};
  const bool letter_first =
      !text.empty() && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
  const bool harmless =
      letter_first && std::all_of(text.begin(), text.end(), plain) &&
      std::find(kMeantOtherwise.begin(), kMeantOtherwise.end(), text) == kMeantOtherwise.end();
  return harmless || text.starts_with("./") ? text : Json(text).dump();
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(yaml_string(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// What a table's columns are taken for.
struct TablePlan {
  size_t target = 0;
  std::optional<size_t> id;
  std::vector<size_t> categories, drop, features;  // features: numbers and categories
  std::vector<std::string> notes;                  // why columns are dropped, and the like
  bool gaps = false;                               // among the features that are numbers
  bool regression = false;
  int64_t classes = 0;
  bool names_of_target = false;  // the classes' numbers are names
  bool rare = false;             // some class has few rows beside others
  int64_t width = 0;             // of the features: a category makes one for each value
};

std::string shown(const LookedAtTable& table, size_t column) {
  return table.header ? table.columns[column].name : std::to_string(column);
}

size_t find_target(const LookedAtTable& table, const std::string& wanted) {
  if (!wanted.empty()) {
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (shown(table, i) == wanted) return i;
    std::vector<std::string> names;
    for (size_t i = 0; i < table.columns.size(); ++i) names.push_back(shown(table, i));
    throw UserError(
        fmt::format("--target: no column '{}'; the columns are {}", wanted, fmt::join(names, ", ")));
  }
  constexpr std::array<std::string_view, 17> kUsual{
      "target", "label",    "labels", "class",    "classes",   "species", "category", "outcome", "y",
      "output", "response", "result", "survived", "diagnosis", "churn",   "quality",  "price"};
  for (const std::string_view name : kUsual)
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (lower(table.columns[i].name) == name) return i;
  return table.columns.size() - 1;
}

bool is_id(const LookedAtColumn& column, size_t place) {
  if (!column.distinct || column.gaps > 0 || column.kind == ColumnKind::empty) return false;
  const std::string name = lower(column.name);
  if (name == "id" || name == "uuid" || name == "guid" || name == "index" || name == "key" ||
      name.ends_with("_id") || name.ends_with(" id") || name.starts_with("unnamed") ||
      (column.name.size() > 2 && column.name.ends_with("Id")))
    return column.kind == ColumnKind::text || column.whole;
  return column.kind == ColumnKind::text && (name == "name" || place == 0);
}

/// What is predicted: a class, or a number.
void plan_target(const LookedAtTable& table, TablePlan& plan) {
  const LookedAtColumn& target = table.columns[plan.target];
  if (target.kind == ColumnKind::empty || target.kind == ColumnKind::date)
    throw UserError(fmt::format("column '{}' cannot be predicted: it holds {}; --target names another",
                                shown(table, plan.target),
                                target.kind == ColumnKind::date ? "dates" : "nothing"));
  if (target.gaps > 0)
    plan.notes.push_back(
        fmt::format("{} of the target '{}' have no value: fit will refuse them, remove those rows first",
                    format_plural(target.gaps, "row"), shown(table, plan.target)));
  constexpr double kMostClassNumbers = 20;
  const bool few = !target.many_values && target.values.size() <= 20;
  const bool counts = target.kind == ColumnKind::number && target.whole && target.least >= 0 &&
                      target.most <= kMostClassNumbers && few;
  plan.regression = target.kind == ColumnKind::number && !counts;
  if (plan.regression) return;
  if (target.many_values)
    throw UserError(
        fmt::format("column '{}' has more than {} different texts, which are no classes; --target "
                    "names another",
                    shown(table, plan.target), LookedAtTable::kMostValues));
  plan.classes = static_cast<int64_t>(target.values.size());
  // Classes that are numbers are counted from 0.
  // Numbers are classes as they are where they count from 0; else they are the classes' names.
  const bool counted = target.least == 0 && target.most == static_cast<double>(plan.classes - 1);
  if (target.kind == ColumnKind::number && !counted) {
    plan.names_of_target = table.header;
    if (!table.header) plan.classes = static_cast<int64_t>(target.most) + 1;
  }
  const auto [least, most] = std::minmax_element(target.counts.begin(), target.counts.end());
  constexpr int64_t kRare = 3;
  plan.rare = *most > kRare * *least;
}

TablePlan plan_table(const LookedAtTable& table, const std::string& wanted) {
  TablePlan plan;
  plan.target = find_target(table, wanted);
  plan_target(table, plan);
  const auto drop = [&](size_t i, const std::string& why) {
    plan.drop.push_back(i);
    plan.notes.push_back(fmt::format("'{}' is left out: {}", shown(table, i), why));
  };
  constexpr size_t kMostCategories = 50;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const LookedAtColumn& column = table.columns[i];
    if (i == plan.target) continue;
    if (!plan.id && table.header && is_id(column, i)) {
      plan.id = i;
    } else if (column.kind == ColumnKind::empty) {
      drop(i, "it is empty");
    } else if (column.kind == ColumnKind::date) {
      drop(i, "dates are no numbers; make columns of what matters of them (year, weekday)");
    } else if (!column.many_values && column.values.size() == 1) {
      drop(i, "all rows have the same value");
    } else if (column.kind == ColumnKind::text &&
               (column.many_values || column.values.size() > kMostCategories)) {
      drop(i, fmt::format("it is text with {} different values",
                          column.many_values ? fmt::format("more than {}", LookedAtTable::kMostValues)
                                             : format_count(static_cast<int64_t>(column.values.size()))));
    } else {
      plan.features.push_back(i);
      if (column.kind == ColumnKind::text) plan.categories.push_back(i);
      plan.gaps = plan.gaps || (column.kind == ColumnKind::number && column.gaps > 0);
      plan.width += column.kind == ColumnKind::text
                        ? static_cast<int64_t>(column.values.size()) + column.gap_spellings
                        : 1;
    }
  }
  if (plan.features.empty())
    throw UserError("the table has no column to predict from: numbers, or text with a few different values");
  if (!table.header && (!plan.categories.empty() || !plan.drop.empty()))
    plan.notes.push_back("columns of text have to be picked by name: give the file a first line of names");
  return plan;
}

std::vector<std::string> column_names(const LookedAtTable& table, const std::vector<size_t>& columns) {
  std::vector<std::string> names;
  for (const size_t column : columns) names.push_back(shown(table, column));
  return names;
}

std::string csv_reader(const LookedAtTable& table, const TablePlan& plan, const std::string& path) {
  std::string text = fmt::format("  train:\n    csv:\n      file: {}\n", yaml_string(path));
  if (table.delimiter != ',')
    text += fmt::format("      delimiter: {}\n", Json(std::string(1, table.delimiter)).dump());
  text += fmt::format("      header: {}\n", table.header);
  text += fmt::format("      target: {:<24}  # what is predicted\n",
                      table.header                              ? yaml_string(shown(table, plan.target))
                      : plan.target + 1 == table.columns.size() ? std::string("-1")
                                                                : std::to_string(plan.target));
  if (plan.id)
    text += fmt::format("      id: {:<28}  # no feature: goes along to what `dtrain predict` writes\n",
                        yaml_string(shown(table, *plan.id)));
  if (!plan.drop.empty() && table.header)
    text += fmt::format("      drop: {}\n", yaml_list(column_names(table, plan.drop)));
  std::vector<size_t> categories = plan.categories;
  if (plan.names_of_target) categories.push_back(plan.target);
  if (!categories.empty() && table.header)
    text += fmt::format("      categories: {}  # names: 0 or 1 for each of a feature's values\n",
                        yaml_list(column_names(table, categories)));
  if (plan.gaps) text += "      fill: median                      # what stands where a number is missing\n";
  return text;
}

std::string described(const LookedAtTable& table, const TablePlan& plan) {
  const LookedAtColumn& target = table.columns[plan.target];
  std::string text =
      fmt::format("# {} and {}. Predicts {}: ", format_plural(table.rows, "row"),
                  format_plural(static_cast<int64_t>(table.columns.size()), "column"),
                  table.header ? "'" + target.name + "'" : "column " + shown(table, plan.target));
  if (plan.regression) {
    text += fmt::format("a number from {:g} to {:g}.\n", target.least, target.most);
  } else {
    text += "one of ";
    constexpr size_t kMostShown = 12;
    std::vector<std::string> classes;
    for (size_t i = 0; i < std::min(target.values.size(), kMostShown); ++i)
      classes.push_back(fmt::format("{} ({})", target.values[i], format_count(target.counts[i])));
    text +=
        fmt::format("{}{}.\n", fmt::join(classes, ", "), target.values.size() > kMostShown ? ", ..." : "");
  }
  for (const std::string& note : plan.notes) text += fmt::format("# {}.\n", note);
  // What came from the file must stay in its comment.
  for (size_t i = 0; i + 1 < text.size(); ++i)
    if ((text[i] == '\n' || text[i] == '\r') && text[i + 1] != '#') text[i] = ' ';
  return text;
}

int64_t batch_size_for(int64_t rows) {
  return rows < 2'000 ? 16 : rows < 20'000 ? 32 : rows < 200'000 ? 128 : 512;
}

constexpr const char* kConfigHead =
    "# yaml-language-server: $schema={}\n# Made by `dtrain new {}`. Train:  dtrain fit {}\n{}\nseed: 1\n\n";

std::string table_config(const NewOptions& options, const std::string& path, const std::string& schema) {
  const LookedAtTable table = look_at_csv(options.data);
  const TablePlan plan = plan_table(table, options.target);
  std::string text = fmt::format(kConfigHead, schema, options.data, options.file, described(table, plan));
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
  text += "dataset:\n" + csv_reader(table, plan, path);
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

/// A side of pictures that a small network takes.
int64_t side_for(int64_t smaller) {
  constexpr std::array<int64_t, 6> kSides{28, 32, 64, 96, 128, 224};
  for (const int64_t side : kSides)
    if (smaller <= side) return side;
  return kSides[4];  // larger ones cost much and are seldom needed
}

std::string picture_config(const NewOptions& options, const fs::path& from, const std::string& schema) {
  const LookedAtPictures looked = look_at_pictures(options.data);
  const auto relative = [&](const std::string& folder) {
    return yaml_string(fs::proximate(folder, from).string());
  };
  int64_t pictures = 0;
  std::vector<std::string> classes;
  for (size_t i = 0; i < looked.classes.size(); ++i) {
    pictures += looked.counts[i];
    constexpr size_t kMostShown = 12;
    if (i < kMostShown)
      classes.push_back(fmt::format("{} ({})", looked.classes[i], format_count(looked.counts[i])));
    if (i == kMostShown) classes.push_back("...");
  }
  std::string described = fmt::format("{}: {}", format_plural(pictures, "picture"), fmt::join(classes, ", "));
  std::replace(described.begin(), described.end(), '\n', ' ');
  std::string text = fmt::format(kConfigHead, schema, options.data, options.file, "# " + described + ".\n");
  const int64_t side = side_for(std::max<int64_t>(1, std::min(looked.height, looked.width)));
  const int channels = looked.grey ? 1 : 3;
  text += fmt::format(
      "model:\n  inputs: {{image: [{0}, {0}, {1}]}}\n  blocks:\n    stage:\n      parameters: {{filters: "
      "32}}\n"
      "      layers:\n"
      "        - conv2d: {{filters: $filters, kernel_size: 3, padding: same, use_bias: false}}\n"
      "        - batch_normalization\n"
      "        - activation: relu\n"
      "        - max_pooling2d: {{pool_size: 2}}\n"
      "  layers:\n",
      side, channels);
  int64_t filters = 32;
  for (int64_t left = side; left > 7; left /= 2, filters = std::min<int64_t>(filters * 2, 256))
    text += fmt::format("    - stage: {{filters: {}}}\n", filters);
  text += fmt::format(
      "    - global_average_pooling2d\n    - dropout: {{rate: 0.2}}\n    - dense: {{units: {}}}  # a score "
      "for each class\n\n",
      looked.classes.size());
  text += fmt::format(
      "dataset:\n  train: {{images: {{directory: {}, size: [{}, {}], resize: crop, channels: {}}}}}\n",
      relative(looked.train), side, side, channels);
  const auto other = [&](const char* name, const std::string& folder) {
    if (folder.empty())
      return fmt::format("  {}: {{split: {{of: train, fraction: 0.15, stratify: true}}}}\n", name);
    return fmt::format("  {}: {{images: {{directory: {}, size: [{}, {}], resize: crop, channels: {}}}}}\n",
                       name, relative(folder), side, side, channels);
  };
  text += other("validation", looked.validation) + other("test", looked.test);
  text +=
      "  transforms:\n    - rescale: {scale: 1/255}\n"
      "  augment:                            # training only\n"
      "    - random_flip: {mode: horizontal} # not for digits and letters\n\n";
  text += fmt::format(
      "train:\n  epochs: 30\n  batch_size: {}\n  loss: {{sparse_categorical_crossentropy: {{from_logits: "
      "true}}}}\n"
      "  metrics: [sparse_categorical_accuracy, confusion_matrix]\n",
      pictures < 2'000 ? 16 : 32);
  if (const auto [least, most] = std::minmax_element(looked.counts.begin(), looked.counts.end());
      *most > 3 * *least)
    text += "  class_weight: balanced              # some classes are rare: their pictures count more\n";
  return text +
         "  optimizer: {adam: {learning_rate: 0.001}}\n"
         "  callbacks: [{early_stopping: {monitor: val_loss, patience: 8}}]\n\n"
         "checkpoint: {best: {monitor: val_loss}}   # `dtrain predict --best` takes it\n";
}

void write_new(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.append(text.data(), text.size());
  file.finish();
}

void make_new(NewOptions options) {
  const Standing standing = look_at(options.data);
  if (standing != Standing::file && standing != Standing::directory)
    throw UserError(
        fmt::format("{}: expected a CSV file or a folder of pictures, there is nothing", options.data));
  while (options.data.size() > 1 && options.data.ends_with('/')) options.data.pop_back();
  if (options.file.empty()) {
    const fs::path name = fs::path(real_path(options.data)).filename();
    options.file = (standing == Standing::file ? name.stem() : name).string() + ".yaml";
  }
  if (look_at(options.file) != Standing::nothing)
    throw UserError(fmt::format("{}: is there already; give another name: --output", options.file));
  const fs::path folder = fs::path(absolute_path(options.file)).parent_path();
  const std::string schema = "dtrain.schema.json";
  const std::string text = standing == Standing::file
                               ? table_config(options, fs::proximate(options.data, folder).string(), schema)
                               : picture_config(options, folder, schema);
  write_new(options.file, text);
  const std::string schema_path = (folder / schema).string();
  if (look_at(schema_path) == Standing::nothing)
    write_new(schema_path, run_config_json_schema().dump(2) + "\n");
  if (options.output.json) print_json(Json::object().set("config", options.file).set("schema", schema_path));
  if (options.output.text())
    print_text(fmt::format("wrote {}; train with: dtrain fit {}\n", options.file, options.file));
}

}  // namespace

void add_new(CommandLine& line) {
  Command command =
      line.add_command("new", "A commented configuration for a CSV file or a folder of pictures");
  const auto options = std::make_shared<NewOptions>();
  command
      .add_option("DATA", options->data,
                  "A CSV file, or a folder that has a folder of pictures for each class")
      .required();
  command
      .add_option("--output,-o", options->file,
                  "The configuration to write (the data's name and .yaml where not given)")
      .type_name("FILE.yaml");
  command.add_option("--target", options->target, "The column to predict, where the guess would be another")
      .type_name("COLUMN");
  add_output_options(command, options->output);
  command.callback([options] { make_new(*options); });
}

}  // namespace dtrain
