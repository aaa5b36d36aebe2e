// Converts objects that Keras serialized (losses, metrics, optimizers, schedules) to their dtrain
// counterparts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/node.h"
#include "config/registry.h"

namespace dtrain {

/// The class or function, and the options, of an object in a Keras file.
struct KerasObject {
  std::string name;
  /// The function that the class applies, as in MeanMetricWrapper; "" for most classes.
  std::string function = {};
  Json options = Json::object();

  /// Returns the kind in `table` that corresponds to `name`. If there is none, returns the kind that
  /// corresponds to `function`; "" if neither has a corresponding kind.
  std::string kind_in(const RegistryBase& table) const;
  /// Returns the name by which messages refer to the object.
  const std::string& shown() const { return function.empty() ? name : function; }
};

/// Parses an object that is written as a name, a function or {class_name, config}. These are the notations of
/// Keras 1, 2 and 3.
KerasObject read_keras_object(const Json& written);

/// Returns an option's value for a configuration. Numbers that Keras stored as float32 are shortened: 0.01
/// for 0.009999999776482582.
ConfigNode option_of_keras(const Json& value);

/// Collects the options of a dtrain kind from the options of a Keras object.
class KindOptions {
 public:
  /// `defaults`: the kind with all of its default options, as Registry::make() resolves it; null for a kind
  /// with required options.
  KindOptions(const RegistryBase& table, std::string kind, const ConfigNode& defaults = {});

  const std::string& kind() const { return kind_; }
  /// Returns whether the kind has an option with this name.
  bool has(std::string_view option) const;
  /// Adds an option, unless the value is the option's default.
  void add(const std::string& option, const Json& value);
  void add(const std::string& option, ConfigNode value);
  bool empty() const { return options_.empty(); }
  /// Returns {kind: options}, or only the kind if there are no options.
  ConfigNode node() const;

 private:
  bool is_default(const std::string& option, const Json& value) const;

  std::string kind_;
  std::vector<std::string> fields_;
  ConfigNode defaults_;
  std::vector<ConfigNode::Entry> options_;
};

}  // namespace dtrain
