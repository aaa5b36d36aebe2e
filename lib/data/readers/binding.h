// Reader options that assign arrays to the inputs and targets of the model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/diagnostics.h"
#include "config/schema.h"
#include "data/located_error.h"
#include "data/readers/reader.h"
#include "data/windows/windows_options.h"

namespace dtrain {

/// Maps names to values, in the order in which they were written: `inputs: {left: a.npy, right: b.npy}`.
template <class V>
struct Named : std::vector<std::pair<std::string, V>> {
  const V* find(const std::string& name) const {
    for (const auto& [key, value] : *this)
      if (key == name) return &value;
    return nullptr;
  }
  /// Returns the location of a name in the configuration, or Mark() if the location is not known.
  Mark mark_of(const std::string& name) const {
    const auto found = marks.find(name);
    return found == marks.end() ? Mark() : found->second;
  }

  std::map<std::string, Mark> marks = {};  // locations of the names in the configuration
};

template <class V>
struct Codec<Named<V>> {
  static bool parse(const ConfigNode& node, const std::string& where, Named<V>& out,
                    Diagnostics& diagnostics) {
    if (!node.is_mapping())
      return report_unexpected(
          node, where,
          where.ends_with("targets")
              ? "a mapping from output names to values (use 'target' for a single target)"
              : "a mapping from names to values",
          diagnostics);
    bool good = true;
    out = {};
    for (const auto& [key, written] : node.entries()) {
      V value{};
      good = Codec<V>::parse(written, where + "." + key.text(), value, diagnostics) && good;
      out.emplace_back(key.text(), std::move(value));
      out.marks.emplace(key.text(), key.mark());
    }
    return good;
  }
  static ConfigNode write(const Named<V>& values) {
    std::vector<ConfigNode::Entry> entries;
    for (const auto& [name, value] : values)
      entries.push_back(ConfigNode::entry(name, Codec<V>::write(value)));
    return ConfigNode::mapping(std::move(entries));
  }
  static Json schema() { return json_type("object").set("additionalProperties", Codec<V>::schema()); }
};

/// Assigns a `V` (such as a file, or a dataset in a file) to each input or target of the model.
template <class V>
struct Binding {
  std::optional<V> one;
  Named<V> several;

  /// Returns one V for each element of `wanted`, in the same order. `one_key` and `several_key` are the names
  /// of the two options in messages. Throws UserError if an element of `wanted` has no V, or if `several` has
  /// a name that is not in `wanted`.
  std::vector<V> resolve(const std::vector<TensorSpec>& wanted, const std::string& one_key,
                         const std::string& several_key, const ReadRequest& request) const {
    std::vector<V> chosen;
    // The only target of a model has no name.
    const bool is_unnamed = wanted.size() == 1 && wanted[0].name.empty();
    if (is_unnamed && !several.empty())
      request.fail(
          fmt::format("'{}' is for models with several outputs, but this model has only one; give '{}'",
                      several_key, one_key));
    for (const TensorSpec& spec : wanted) {
      if (const V* named = several.find(spec.name))
        chosen.push_back(*named);
      else if (one && wanted.size() == 1)
        chosen.push_back(*one);
      else
        request.fail(missing(spec.name, wanted.size(), one_key, several_key));
    }
    for (const auto& [name, value] : several)
      if (std::none_of(wanted.begin(), wanted.end(),
                       [&, n = name](const auto& spec) { return spec.name == n; }))
        request.fail_at(several.mark_of(name),
                        fmt::format("'{}' contains '{}', but the model has no {} with this name{}",
                                    several_key, name, several_key == "inputs" ? "input" : "output",
                                    suggestion_or_list(name, spec_names(wanted))));
    return chosen;
  }

 private:
  static std::string missing(const std::string& name, size_t count, const std::string& one_key,
                             const std::string& several_key) {
    const std::string wanted = name.empty()
                                   ? "no data is read for the target; "
                                   : fmt::format("no data is read for the model's {} '{}'; ", one_key, name);
    return count == 1 ? wanted + "give '" + one_key + "'"
                      : wanted + "give '" + several_key + ": {" + name + ": ...}'";
  }
};

/// Options of readers whose arrays have names: each array is a file, or a dataset in a file.
struct ArrayNames {
  std::optional<std::string> input, target;
  Named<std::string> inputs, targets;

  /// Returns one array name for each input of the request, then one for each target. If the request has no
  /// targets, the options need not name target arrays.
  std::vector<std::string> resolve(const ReadRequest& request) const {
    auto all = Binding<std::string>{input, inputs}.resolve(request.inputs, "input", "inputs", request);
    if (!request.targets.empty()) {
      auto more =
          Binding<std::string>{target, targets}.resolve(request.targets, "target", "targets", request);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }
  /// Calls open(name) for the array that identifies the series (`windows.by`) and for the array of times
  /// (`windows.time`), if the options name them. Errors that open() throws get the location of the option.
  template <class Open>
  static void for_each_key(const ReadRequest& request, Open open) {
    if (!request.windows) return;
    const WindowsOptions& windows = *request.windows;
    ErrorCollector errors;
    if (windows.by) errors.attempt(windows.by_mark, [&] { open(*windows.by); });
    if (windows.time) errors.attempt(windows.time_mark, [&] { open(*windows.time); });
    errors.throw_if_errors();
  }
  /// Implements Reader::why_no_windows().
  static std::string why_no_windows(const WindowsOptions& windows) {
    if (!windows.past_targets) return "";
    return "only the csv reader supports the option 'past_targets'; to use the targets as inputs, name their "
           "array in 'input', too";
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& one : {input, target})
      if (one) all.push_back(*one);
    for (const auto* several : {&inputs, &targets})
      for (const auto& [key, value] : *several) all.push_back(value);
    return all;
  }
};

/// Adds the fields input, inputs, target, targets of `Options` (which derives from ArrayNames) and their
/// rules.
template <class Options>
Schema<Options>& add_array_names(Schema<Options>& schema, const std::string& what) {
  using One = std::optional<std::string> Options::*;
  using Several = Named<std::string> Options::*;
  schema.optional("input", static_cast<One>(&Options::input), what + " of the model's only input")
      .optional("inputs", static_cast<Several>(&Options::inputs),
                what + " of each model input, by input name")
      .optional("target", static_cast<One>(&Options::target), what + " of the only target")
      .optional("targets", static_cast<Several>(&Options::targets), what + " of each target, by output name")
      .rule([](const Options& options, const ConfigNode& node, Diagnostics& diagnostics) {
        if (options.input.has_value() == !options.inputs.empty())
          diagnostics.error(
              node, "give either 'input' (for the only input) or 'inputs' (for several inputs, by name)");
        if (options.target && !options.targets.empty())
          diagnostics.error(node,
                            "give either 'target' (for the only target) or 'targets' (for several targets, "
                            "by name), not both");
      });
  return schema;
}

}  // namespace dtrain
