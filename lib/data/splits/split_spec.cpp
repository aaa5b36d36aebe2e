#include "data/splits/split_spec.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "config/schema.h"
#include "config/schema_fields.h"
#include "data/readers/reader.h"

namespace dtrain {

namespace {

constexpr std::array<std::string_view, 2> kSplitKeys{"rows", "windows"};
constexpr const char* kInputTarget = "use the input NAME, after the transforms, as the target";
constexpr std::array<std::string_view, 1> kTarget{"target"}, kTargets{"targets"};

bool parse_rows(const ConfigNode& node, SplitSpec& out, Diagnostics& diagnostics) {
  std::vector<int64_t> rows;
  if (!Codec<std::vector<int64_t>>::parse(node, "rows", rows, diagnostics)) return false;
  if (rows.size() != 2 || rows[0] < 0 || rows[0] >= rows[1])
    return report_unexpected(node, "rows", "a range [from, to) with 0 <= from < to", diagnostics);
  out.rows = std::move(rows);
  return true;
}

/// Parses `windows`. Reports an error if windows cannot be used with the reader or with the targets of the
/// split.
void parse_windows(const ConfigNode& node, SplitSpec& out, Diagnostics& diagnostics) {
  WindowsOptions windows;
  if (!WindowsOptions::schema().parse(node, "windows", windows, diagnostics)) return;
  windows.mark = node.mark();
  if (const ConfigNode* by = node.find("by")) windows.by_mark = by->mark();
  if (const ConfigNode* time = node.find("time")) windows.time_mark = time->mark();
  if (!out.input_targets.empty())
    diagnostics.error(
        out.input_targets.front().mark,
        "target: with 'windows', targets are rows after the inputs, so a target cannot be an input");
  if (const std::string why = out.reader ? out.reader->why_no_windows(windows) : ""; !why.empty())
    diagnostics.error(node, "windows: " + why);
  out.windows = std::move(windows);
}

/// Returns the node NAME if the target is written as `{input: NAME}`. Returns null for all other targets.
const ConfigNode* named_input(const ConfigNode& target) {
  if (!target.is_mapping() || target.entries().size() != 1) return nullptr;
  const ConfigNode* input = target.find("input");
  return input && input->is_scalar() ? input : nullptr;
}

/// Removes the targets that are inputs (`{input: NAME}`) from the options of a reader, adds them to `out`,
/// and returns the remaining options.
ConfigNode take_input_targets(ConfigNode options, SplitSpec& out) {
  if (const ConfigNode* target = options.find("target"))
    if (const ConfigNode* input = named_input(*target)) {
      out.input_targets.push_back({"", input->text(), input->mark()});
      options = options.without(kTarget);
    }
  const ConfigNode* targets = options.find("targets");
  if (!targets || !targets->is_mapping()) return options;
  std::vector<ConfigNode::Entry> others;
  for (const auto& [name, target] : targets->entries()) {
    const ConfigNode* input = named_input(target);
    if (input)
      out.input_targets.push_back({name.text(), input->text(), input->mark()});
    else
      others.emplace_back(name, target);
  }
  if (others.size() == targets->entries().size()) return options;
  const Mark mark = targets->mark();
  options = options.without(kTargets);
  return others.empty() ? options : options.with("targets", ConfigNode::mapping(std::move(others), mark));
}

/// Returns the node {reader: options} of a split without the targets that are inputs. These targets are added
/// to `out`.
ConfigNode without_input_targets(const ConfigNode& node, SplitSpec& out) {
  if (!node.is_mapping()) return node;
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [key, value] : node.entries())
    entries.emplace_back(key, value.is_mapping() ? take_input_targets(value, out) : value);
  return out.input_targets.empty() ? node : ConfigNode::mapping(std::move(entries), node.mark());
}

ConfigNode with_input_targets(const SplitSpec& split) {
  const ConfigNode* options = split.reader.resolved.find(split.reader.name);
  ConfigNode all = options ? *options : ConfigNode::mapping({});
  std::vector<ConfigNode::Entry> several;
  if (const ConfigNode* targets = all.find("targets"); targets && targets->is_mapping())
    several = targets->entries();
  const size_t before = several.size();
  for (const InputTarget& one : split.input_targets) {
    const ConfigNode input = ConfigNode::mapping({ConfigNode::entry("input", string_node(one.input))});
    if (one.target.empty())
      all = all.with("target", input);
    else
      several.push_back(ConfigNode::entry(one.target, input));
  }
  if (several.size() > before) all = all.with("targets", ConfigNode::mapping(std::move(several)));
  return ConfigNode::mapping({ConfigNode::entry(split.reader.name, all)});
}

Json either(const Json& one, Json other) {
  Json both = Json::object().set("anyOf", Json::array().push(one).push(std::move(other)));
  for (const char* keyword : {"default", "description"})
    if (const Json* value = one.find(keyword)) both.set(keyword, *value);
  return both;
}

Json input_target_schema() {
  return SchemaDefinitions::define("input_target", [] {
    Json input = json_type("object").set("properties", Json::object().set("input", json_type("string")));
    input.set("required", Json::array().push("input")).set("additionalProperties", false);
    return input.set("description", kInputTarget);
  });
}

/// Returns the JSON schema of a reader's fields, extended so that targets may be written as `{input: NAME}`.
Json with_input_target(const Json& fields) {
  const Json input = input_target_schema();
  const Json* target = fields.find("target");
  Json more = fields;
  more.set("target", target ? either(*target, input) : Json(input).set("description", kInputTarget));
  if (const Json* targets = fields.find("targets")) {
    Json several = *targets;
    more.set("targets",
             several.set("additionalProperties", either(targets->at("additionalProperties"), input)));
  }
  return more;
}

/// Adds the keys that may be used with all readers to their JSON schema: rows, windows, and targets that are
/// inputs.
Json with_common_keys(const Json& readers) {
  Json rows = json_type("array").set("items", json_type("integer").set("minimum", 0)).set("minItems", 2);
  rows.set("maxItems", 2)
      .set("description",
           "[from, to]: use only the samples n with from <= n < to, counted from 0. Example: [0, 1000] uses "
           "the first 1000 samples");
  const Json windows =
      SchemaDefinitions::define("windows", [] { return WindowsOptions::schema().json_schema(); });
  return with_fields(with_option_fields(readers, with_input_target), [&](const Json& reader) {
    return Json(reader).set("rows", rows).set("windows", windows);
  });
}

}  // namespace

const Schema<DrawnSplit>& DrawnSplit::schema() {
  static const auto all =
      Schema<DrawnSplit>(
          "Draws samples at random from another split. The other split keeps the remaining samples.")
          .required("of", &DrawnSplit::of, "the split to draw from: train, validation or test")
          .required("fraction", &DrawnSplit::fraction,
                    "the fraction of the other split's samples to draw, for example 0.15",
                    Check<double>{"a fraction between 0 and 1",
                                  [](const double& value) { return value > 0 && value < 1; },
                                  Json::object().set("exclusiveMinimum", 0).set("exclusiveMaximum", 1)})
          .optional("stratify", &DrawnSplit::stratify,
                    "whether to draw the same fraction of each class, so that both splits have the same "
                    "class proportions. The classes are those of the first target. The numbers are rounded "
                    "to whole samples")
          .optional("seed", &DrawnSplit::seed,
                    "seed of the random draw. Default: the run's seed. Set it so that runs with different "
                    "seeds have the same split");
  return all;
}

const InputTarget* SplitSpec::find_input_target(const std::string& target) const {
  for (const InputTarget& one : input_targets)
    if (one.target.empty() || one.target == target) return &one;
  return nullptr;
}

std::vector<TensorSpec> SplitSpec::targets_to_read(const std::vector<TensorSpec>& targets) const {
  std::vector<TensorSpec> read;
  for (const TensorSpec& target : targets)
    if (!find_input_target(target.name)) read.push_back(target);
  return read;
}

namespace {

/// Reports keys next to the reader that are not options of a split, such as a misspelled `rows`, and returns
/// the node without them. Does nothing if there is no reader, because one of the keys may then be a
/// misspelled reader.
ConfigNode without_unknown_keys(const ConfigNode& node, Diagnostics& diagnostics) {
  if (!node.is_mapping() || node.entries().size() < 2) return node;
  const auto is_reader = [](const ConfigNode::Entry& entry) {
    return registry<Reader>().contains(entry.first.text());
  };
  if (std::count_if(node.entries().begin(), node.entries().end(), is_reader) != 1) return node;
  const std::vector<std::string> others(kSplitKeys.begin(), kSplitKeys.end());
  std::vector<ConfigNode::Entry> kept;
  for (const ConfigNode::Entry& entry : node.entries()) {
    if (is_reader(entry)) {
      kept.push_back(entry);
      continue;
    }
    diagnostics.error(entry.first,
                      fmt::format("unknown key '{}' at the same level as the reader{}", entry.first.text(),
                                  suggestion_or_list(entry.first.text(), others)));
  }
  return ConfigNode::mapping(std::move(kept), node.mark());
}

}  // namespace

bool Codec<SplitSpec>::parse(const ConfigNode& written, const std::string&, SplitSpec& out,
                             Diagnostics& diagnostics) {
  const size_t before = diagnostics.count();
  const ConfigNode node = registry<Reader>().without_replaced(written, "split");
  out.mark = node.mark();
  if (const ConfigNode* split = node.find("split")) {
    const auto is_own = [](const ConfigNode::Entry& entry) { return !entry.first.inherited(); };
    const bool is_mixed = std::count_if(node.entries().begin(), node.entries().end(), is_own) > 1;
    for (const auto& [key, value] : node.entries())
      if (is_mixed && !key.inherited() && key.text() != "split")
        diagnostics.error(key, fmt::format("'{}' cannot be used together with 'split', because 'split' draws "
                                           "samples of another split; remove one of the two keys",
                                           key.text()));
    DrawnSplit drawn;
    DrawnSplit::schema().parse(*split, "split", drawn, diagnostics);
    out.drawn = std::move(drawn);
    return diagnostics.count() == before;
  }
  if (const ConfigNode* rows = node.find("rows")) parse_rows(*rows, out, diagnostics);
  const ConfigNode reader =
      without_unknown_keys(node.is_mapping() ? node.without(kSplitKeys) : node, diagnostics);
  out.reader = registry<Reader>().parse(without_input_targets(reader, out), diagnostics);
  if (const ConfigNode* windows = node.find("windows")) parse_windows(*windows, out, diagnostics);
  return diagnostics.count() == before;
}

ConfigNode Codec<SplitSpec>::write(const SplitSpec& split) {
  if (split.drawn)
    return ConfigNode::mapping({ConfigNode::entry("split", DrawnSplit::schema().write(*split.drawn))});
  ConfigNode all = split.input_targets.empty() ? split.reader.resolved : with_input_targets(split);
  if (split.rows) all = all.with("rows", Codec<std::vector<int64_t>>::write(*split.rows));
  return split.windows ? all.with("windows", WindowsOptions::schema().write(*split.windows)) : all;
}

Json Codec<SplitSpec>::schema() {
  return SchemaDefinitions::define("split", [] {
    Json readers = SchemaDefinitions::define(
        registry<Reader>().noun(), [] { return with_common_keys(registry<Reader>().choices_schema()); });
    Json drawn = json_type("object")
                     .set("properties", Json::object().set("split", DrawnSplit::schema().json_schema()))
                     .set("required", Json::array().push("split"))
                     .set("additionalProperties", false);
    return Json::object().set("anyOf", Json::array().push(std::move(readers)).push(std::move(drawn)));
  });
}

}  // namespace dtrain
