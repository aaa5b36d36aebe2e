// dtrain diff: compares two checkpoints, runs, model files or step logs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "base/location.h"
#include "base/text.h"
#include "checkpoint/foreign_file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "commands.h"
#include "config/yaml/yaml.h"
#include "interop/keras/import/import.h"
#include "interop/weight_file.h"
#include "report/array_difference.h"
#include "report/run_files.h"
#include "train/exported_run.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

struct DiffOptions {
  OutputOptions output;
  std::string a, b;
  double tolerance = 0;
  bool arrays_only = false;
};

/// A fact with different values on the two sides; the value is "" on a side that lacks the fact.
struct ChangedFact {
  std::string name, a, b;
};

/// An array with different numbers on the two sides.
struct ChangedArray {
  std::string name;
  ArrayDifference difference;
};

/// Holds the differences between the weights of the two sides, or between their optimizer slots.
struct ArrayComparison {
  int64_t same = 0;
  std::vector<ChangedArray> changed;  ///< most different first
  std::vector<ChangedFact> shapes;    ///< arrays with different shapes or types
  std::vector<std::string> only_a, only_b;
  bool is_equal() const { return changed.empty() && shapes.empty() && only_a.empty() && only_b.empty(); }
};

/// Holds all differences between the two sides.
struct Comparison {
  std::vector<ChangedFact> config, graph, state;
  std::vector<std::string> data;
  ArrayComparison weights, slots;
  bool has_slots = false;
  bool is_equal() const {
    return config.empty() && graph.empty() && state.empty() && data.empty() && weights.is_equal() &&
           slots.is_equal();
  }
};

/// Returns the weights of an imported model, with the names that the weights have in dtrain.
std::vector<ArrayRef> weights_of(const KerasImport& imported) {
  std::vector<ArrayRef> weights;
  for (const auto& [name, array] : imported.parameters)
    weights.push_back({name, array.shape, DType::float32, array.values.get()});
  return weights;
}

/// One of the two compared models.
struct Side {
  std::string path;  ///< path of the model's file
  WeightFile file;
  std::optional<KerasImport> imported;  ///< set by match_names()

  std::vector<ArrayRef> weights() const { return imported ? weights_of(*imported) : file.weights(); }
};

/// Opens a side: the file that the user gave, or the checkpoint of a run.
Side load_side(const std::string& given) {
  if (file_type(given) == FileType::nothing)
    throw UserError(fmt::format(
        "{}: expected a checkpoint, a run, a model file or a step log, but there is no such file", given));
  const std::string path = best_checkpoint_at(given, print_warning);
  return {path, WeightFile::load(path), std::nullopt};
}

/// Converts the weights of `side` to the layout of `other`, if `other` has the weight names and the order of
/// axes of another tool. `side` must then be a checkpoint: it is replaced by the exported model, and the run
/// that owns the weights is returned. Returns null if nothing was converted.
std::unique_ptr<SavedRun> match_layout(Side& side, const Side& other) {
  if (side.file.layout() == other.file.layout() || other.file.layout() == WeightLayout::keras) return nullptr;
  if (!side.file.checkpoint())
    throw UserError(fmt::format(
        "{0}: the names and the order of axes of the weights in this file differ from those in {1}; "
        "compare {1} with a run, a checkpoint or a folder written by `dtrain import` instead",
        side.path, other.path));
  auto run = std::make_unique<SavedRun>(load_saved_run(side.path, {}, print_warning));
  side.file = WeightFile::of_model(exported_run(*run, {}).model, other.file.layout());
  return run;
}

std::map<std::string, const ArrayRef*> by_name(const std::vector<ArrayRef>& arrays) {
  std::map<std::string, const ArrayRef*> named;
  for (const ArrayRef& array : arrays) named.emplace(array.name, &array);
  return named;
}

/// Returns how many arrays of `a` have the name of an array of `b`.
int64_t count_common(const std::vector<ArrayRef>& a, const std::vector<ArrayRef>& b) {
  const auto of_b = by_name(b);
  return std::count_if(a.begin(), a.end(), [&](const ArrayRef& array) { return of_b.contains(array.name); });
}

/// If `side` is a Keras model and `other` is a checkpoint with other names of weights, imports the model. Its
/// weights then have the names that `dtrain import` gives them. They keep the names in the file if these
/// names fit the checkpoint better, or if dtrain cannot import the model.
void match_names(Side& side, const Side& other) {
  const bool is_keras = !side.file.checkpoint() && (begins_as_hdf5(side.path) || is_keras_archive(side.path));
  if (!is_keras || !other.file.checkpoint()) return;
  const std::vector<ArrayRef>& wanted = other.file.weights();
  const int64_t common = count_common(wanted, side.file.weights());
  if (common == static_cast<int64_t>(wanted.size())) return;
  try {
    KerasImport imported = import_keras(side.path, false, [](const ConfigNode& model) { return model; });
    if (count_common(wanted, weights_of(imported)) > common) side.imported = std::move(imported);
  } catch (const UserError&) {  // the file contains only weights, or dtrain lacks one of the layers
  }
}

std::span<const float> numbers_of(const ArrayRef& array) {
  return {static_cast<const float*>(array.data), static_cast<size_t>(array.shape.elements())};
}

/// Compares an array that both sides have, and records the outcome in `result`. `same_others`: whether arrays
/// without data (WeightFile::other_values()) are equal.
void compare_one(const std::string& name, const ArrayRef& a, const ArrayRef& b, bool same_others,
                 double tolerance, ArrayComparison& result) {
  const auto describe = [](const ArrayRef& array) {
    return fmt::format("{} {}", array.shape.str(), name_of(array.dtype));
  };
  if (a.shape != b.shape || a.dtype != b.dtype) {
    result.shapes.push_back({name, describe(a), describe(b)});
    return;
  }
  if (!a.data || !b.data || a.dtype != DType::float32) {
    const bool same = a.bytes() == 0 || (a.data && b.data && std::memcmp(a.data, b.data, a.bytes()) == 0) ||
                      (!a.data && !b.data && same_others);
    if (same) ++result.same;
    if (!same) result.shapes.push_back({name, "values that are not floats", "different values"});
    return;
  }
  ArrayDifference difference = compare_arrays(numbers_of(a), numbers_of(b), tolerance);
  if (difference.different == 0) {
    ++result.same;
  } else {
    result.changed.push_back({name, difference});
  }
}

/// `same_others(name)`: see compare_one().
ArrayComparison compare_all(const std::vector<ArrayRef>& a, const std::vector<ArrayRef>& b,
                            const std::function<bool(const std::string&)>& same_others, double tolerance) {
  ArrayComparison result;
  const auto of_a = by_name(a), of_b = by_name(b);
  for (const auto& [name, array] : of_a) {
    const auto other = of_b.find(name);
    if (other == of_b.end()) {
      result.only_a.push_back(name);
    } else {
      compare_one(name, *array, *other->second, same_others(name), tolerance, result);
    }
  }
  for (const auto& [name, array] : of_b)
    if (!of_a.contains(name)) result.only_b.push_back(name);
  std::stable_sort(result.changed.begin(), result.changed.end(),
                   [](const auto& x, const auto& y) { return x.difference.largest > y.difference.largest; });
  return result;
}

/// Returns the arrays of all slots, with names such as "momentum of dense/kernel".
std::vector<ArrayRef> slots_of(const Checkpoint& checkpoint) {
  std::vector<ArrayRef> arrays;
  for (const OptimizerSlot& slot : checkpoint.content().slots)
    for (ArrayRef array : slot.arrays) {
      array.name = fmt::format("{} of {}", slot.name, array.name);
      arrays.push_back(std::move(array));
    }
  return arrays;
}

Json settings_of(const Checkpoint& checkpoint) {
  Diagnostics diagnostics;
  const ConfigNode config = parse_yaml(checkpoint.content().config_yaml, checkpoint.path(), diagnostics);
  diagnostics.throw_if_errors();
  return dtrain::settings_of(config);
}

/// Compares settings. Ignores the name of a run and the folder of its data, because they only say where files
/// are.
void compare_configs(const Checkpoint& a, const Checkpoint& b, Comparison& result) {
  const Json of_a = settings_of(a), of_b = settings_of(b);
  std::map<std::string, std::pair<std::string, std::string>> settings;
  for (const auto& [key, value] : of_a.entries()) settings[key].first = value.as_string();
  for (const auto& [key, value] : of_b.entries()) settings[key].second = value.as_string();
  for (const auto& [key, values] : settings) {
    if (values.first == values.second || key == "name" || key == "dataset.root") continue;
    (key.starts_with("model.") ? result.graph : result.config).push_back({key, values.first, values.second});
  }
}

/// Compares counters and data sets.
void compare_states(const Checkpoint& a, const Checkpoint& b, Comparison& result) {
  const TrainingState of_a = saved_state(a), of_b = saved_state(b);
  const auto compare = [&](const char* name, int64_t x, int64_t y) {
    if (x != y) result.state.push_back({name, std::to_string(x), std::to_string(y)});
  };
  compare("step", of_a.step, of_b.step);
  compare("epoch", of_a.epoch, of_b.epoch);
  compare("step_in_epoch", of_a.step_in_epoch, of_b.step_in_epoch);
  for (const auto& [split, data] : of_a.data) {
    const auto other = of_b.data.find(split);
    if (other == of_b.data.end()) continue;
    if (const std::string change = describe_change(data, other->second); !change.empty())
      result.data.push_back(fmt::format("{}: {}", split, change));
  }
}

Comparison compare(const Side& a, const Side& b, const DiffOptions& options) {
  Comparison result;
  const auto same_others = [&](const std::string& name) {
    const std::string_view values = a.file.other_values(name);
    return !values.empty() && values == b.file.other_values(name);
  };
  result.weights = compare_all(a.weights(), b.weights(), same_others, options.tolerance);
  for (const Side* side : {&a, &b})
    if (side->imported && side->imported->mapped) side->imported->mapped->check();
  const Checkpoint *of_a = a.file.checkpoint(), *of_b = b.file.checkpoint();
  if (!of_a || !of_b) return result;
  result.has_slots = true;
  result.slots = compare_all(slots_of(*of_a), slots_of(*of_b), same_others, options.tolerance);
  if (options.arrays_only) return result;
  compare_configs(*of_a, *of_b, result);
  compare_states(*of_a, *of_b, result);
  return result;
}

std::string as_text(const std::vector<ChangedFact>& facts, const std::string& title) {
  std::string text;
  for (const auto& [name, a, b] : facts)
    text += fmt::format("  {}: {} -> {}\n", name, a.empty() ? "(none)" : a, b.empty() ? "(none)" : b);
  return text.empty() ? "" : fmt::format("\n{}\n{}", title, text);
}

std::string as_text(const ArrayComparison& arrays, const std::string& title, const DiffOptions& options) {
  std::string text;
  if (!arrays.changed.empty()) {
    std::vector<Table::Column> columns{{"array"}};
    for (const char* name : {"elements", "different", "largest", "relative"})
      columns.push_back({name, Table::Align::right});
    for (const char* distance : ArrayDifference::kDistances)
      columns.push_back(
          {std::string(distance) == "NaN" ? "NaN" : fmt::format("{} ulp", distance), Table::Align::right});
    Table table(columns);
    for (const auto& [name, difference] : arrays.changed) {
      std::vector<std::string> row{
          name, format_count(difference.elements), format_count(difference.different),
          fmt::format("{:.2e}", difference.largest), fmt::format("{:.2e}", difference.relative)};
      for (const int64_t count : difference.distances) row.push_back(count ? format_count(count) : "");
      table.add(std::move(row));
    }
    text += table.str();
  }
  for (const auto& [name, a, b] : arrays.shapes) text += fmt::format("  {}: {} -> {}\n", name, a, b);
  for (const auto& [names, path] :
       {std::pair{&arrays.only_a, &options.a}, std::pair{&arrays.only_b, &options.b}})
    for (const std::string& name : *names) text += fmt::format("  {}: only in {}\n", name, *path);
  return text.empty() ? "" : fmt::format("\n{}\n{}", title, text);
}

/// Returns e.g. "different: 3 of 12 weights, 12 of 24 optimizer slots, 2 settings".
std::string verdict(const Comparison& found, const DiffOptions& options) {
  const std::string within =
      options.tolerance > 0 ? fmt::format(" (within {})", options.tolerance) : std::string();
  const auto count = [](const ArrayComparison& arrays) {
    return static_cast<int64_t>(arrays.changed.size() + arrays.shapes.size() + arrays.only_a.size() +
                                arrays.only_b.size());
  };
  if (found.is_equal())
    return fmt::format("equal{}: {}{}", within, format_plural(found.weights.same, "weight"),
                       found.has_slots ? ", " + format_plural(found.slots.same, "optimizer slot") : "");
  std::vector<std::string> parts;
  const auto add = [&](int64_t different, int64_t same, const char* noun) {
    if (different > 0)
      parts.push_back(
          fmt::format("{} of {}", format_count(different), format_plural(different + same, noun)));
  };
  add(count(found.weights), found.weights.same, "weight");
  add(count(found.slots), found.slots.same, "optimizer slot");
  for (const auto& [facts, noun] : {std::pair{&found.graph, "model setting"},
                                    std::pair{&found.config, "setting"}, std::pair{&found.state, "counter"}})
    if (!facts->empty()) parts.push_back(format_plural(static_cast<int64_t>(facts->size()), noun));
  if (!found.data.empty()) parts.emplace_back("the data");
  std::string text = "different" + within + ": ";
  for (size_t i = 0; i < parts.size(); ++i) text += (i ? ", " : "") + parts[i];
  return text;
}

Json as_json(const std::vector<ChangedFact>& facts) {
  Json list = Json::array();
  for (const auto& [name, a, b] : facts) list.push(Json::object().set("name", name).set("a", a).set("b", b));
  return list;
}

Json as_json(const ArrayComparison& arrays) {
  Json changed = Json::array(), only_a = Json::array(), only_b = Json::array();
  for (const auto& [name, difference] : arrays.changed) {
    Json ulps = Json::object();
    for (size_t i = 0; i < difference.distances.size(); ++i)
      ulps.set(ArrayDifference::kDistances[i], difference.distances[i]);
    changed.push(Json::object()
                     .set("name", name)
                     .set("elements", difference.elements)
                     .set("different", difference.different)
                     .set("largest", difference.largest)
                     .set("relative", difference.relative)
                     .set("ulps", std::move(ulps)));
  }
  for (const std::string& name : arrays.only_a) only_a.push(name);
  for (const std::string& name : arrays.only_b) only_b.push(name);
  return Json::object()
      .set("same", arrays.same)
      .set("changed", std::move(changed))
      .set("shapes", as_json(arrays.shapes))
      .set("only_a", std::move(only_a))
      .set("only_b", std::move(only_b));
}

Json as_json(const Comparison& found, const Side& a, const Side& b) {
  Json data = Json::array();
  for (const std::string& change : found.data) data.push(change);
  Json json = Json::object().set("a", a.path).set("b", b.path).set("equal", found.is_equal());
  json.set("model", as_json(found.graph))
      .set("config", as_json(found.config))
      .set("state", as_json(found.state));
  json.set("data", std::move(data)).set("weights", as_json(found.weights));
  if (found.has_slots) json.set("slots", as_json(found.slots));
  return json;
}

/// Returns true if a file starts like the output of `--step-log`.
bool is_step_log(const std::string& path) {
  constexpr std::string_view kBegins = R"({"step")";
  return first_bytes(path, kBegins.size()) == kBegins;
}

/// Returns the losses of a step log by step. If a resume repeated a step, the last value counts.
std::map<int64_t, double> read_step_log(const std::string& path) {
  std::map<int64_t, double> losses;
  std::ifstream file(path, std::ios::binary);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (file.eof()) break;  // the last line is incomplete because the run was killed
    try {
      const Json step = Json::parse(line);
      losses[step.at("step").as_int()] = step.at("loss").as_double();
    } catch (const UserError& error) {
      throw UserError(
          fmt::format("{}:{}: expected a line of a step log, found: {}", path, number, error.what()));
    }
  }
  return losses;
}

/// Compares step logs. Returns true if they are equal.
bool diff_step_logs(const DiffOptions& options) {
  const std::map<int64_t, double> a = read_step_log(options.a), b = read_step_log(options.b);
  std::optional<int64_t> first;
  int64_t common = 0, different = 0;
  double largest = 0;
  for (const auto& [step, loss] : a) {
    const auto other = b.find(step);
    if (other == b.end()) continue;
    ++common;
    const double distance = std::abs(loss - other->second);
    const bool both_nan = std::isnan(loss) && std::isnan(other->second);
    if (both_nan || loss == other->second ||
        distance <= options.tolerance * std::max(1.0, std::abs(other->second)))
      continue;
    if (!first) first = step;
    ++different;
    largest = std::max(largest, std::isnan(distance) ? INFINITY : distance);
  }
  const auto only_a = static_cast<int64_t>(a.size()) - common,
             only_b = static_cast<int64_t>(b.size()) - common;
  const bool is_equal = different == 0 && only_a == 0 && only_b == 0;
  if (options.output.json) {
    Json json = Json::object().set("equal", is_equal).set("steps", common).set("different", different);
    json.set("first", first ? Json(*first) : Json()).set("largest", largest);
    if (first) json.set("a", a.at(*first)).set("b", b.at(*first));
    print_json(json.set("only_a", only_a).set("only_b", only_b));
  } else if (options.output.text()) {
    std::string text = is_equal ? fmt::format("equal: {}\n", format_plural(common, "step")) : "different\n";
    if (first)
      text += fmt::format("first    step {}: {:.9g} -> {:.9g}\nsteps    {} of {} differ, by {:.2e} at most\n",
                          *first, a.at(*first), b.at(*first), format_count(different), format_count(common),
                          largest);
    if (only_a) text += fmt::format("{} only in {}\n", format_plural(only_a, "step"), options.a);
    if (only_b) text += fmt::format("{} only in {}\n", format_plural(only_b, "step"), options.b);
    print_text(text);
  }
  return is_equal;
}

bool diff_models(const DiffOptions& options) {
  Side a = load_side(options.a), b = load_side(options.b);
  const auto run_a = match_layout(a, b), run_b = match_layout(b, a);
  match_names(a, b);
  match_names(b, a);
  const Comparison found = compare(a, b, options);
  if (options.output.json) print_json(as_json(found, a, b));
  if (options.output.text()) {
    std::string text = verdict(found, options) + "\n" + as_text(found.graph, "model") +
                       as_text(found.config, "configuration") + as_text(found.state, "state");
    if (!found.data.empty()) text += "\ndata\n";
    for (const std::string& change : found.data) text += "  " + change + "\n";
    print_text(text + as_text(found.weights, "weights", options) +
               as_text(found.slots, "optimizer slots", options));
  }
  return found.is_equal();
}

void diff(const DiffOptions& options) {
  if (!(options.tolerance >= 0))
    throw UserError(fmt::format("--tolerance: expected a number of at least 0, found {}", options.tolerance));
  const bool logs[] = {is_step_log(options.a), is_step_log(options.b)};
  if (logs[0] != logs[1])
    throw UserError(fmt::format("{}: this is a step log, but {} is not; compare two step logs, or two models",
                                logs[0] ? options.a : options.b, logs[0] ? options.b : options.a));
  if (!(logs[0] ? diff_step_logs(options) : diff_models(options))) throw Unequal();
}

}  // namespace

void add_diff(CommandLine& line) {
  Command command = line.add_command("diff", "Compare two checkpoints, runs, model files or step logs");
  const auto options = std::make_shared<DiffOptions>();
  constexpr const char* kSides =
      "The first side of the comparison: a run (its best checkpoint if it has one, otherwise its newest), a "
      "checkpoint, an imported model, a model file (.keras, .h5, .safetensors or .onnx; only its weights are "
      "compared), or a step log (from fit --step-log)";
  command.add_option("A", options->a, kSides).required();
  command.add_option("B", options->b, "The run, checkpoint, model file or step log to compare with A")
      .required();
  command
      .add_option("--tolerance", options->tolerance,
                  "Consider two numbers a and b equal if |a - b| <= TOLERANCE * max(1, |b|). With the "
                  "default 0, all bits must be identical")
      .type_name("TOLERANCE");
  command.add_flag("--arrays", options->arrays_only, "Compare only weights and optimizer state");
  add_output_options(command, options->output);
  command.callback([options] { diff(*options); });
}

}  // namespace dtrain
