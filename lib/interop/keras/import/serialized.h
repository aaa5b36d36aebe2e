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
  /// The function that the class applies (MeanMetricWrapper); "" for most classes.
  std::string function = {};
  Json options = Json::object();

  /// Returns the kind in `table` that corresponds to `name` or, if there is none, to `function`; "" if there
  /// is no kind for either.
  std::string kind_in(const RegistryBase& table) const;
  /// Returns the name of the object for messages.
  const std::string& shown() const { return function.empty() ? name : function; }
};

/// Parses a name, a function or {class_name, config}, as written by Keras 1, 2 and 3.
KerasObject read_keras_object(const Json& written);

/// Returns an option's value for a configuration. Numbers that Keras stored as float32 are shortened: 0.01
/// for 0.009999999776482582.
ConfigNode option_of_keras(const Json& value);

/// Collects the options of a dtrain kind from those of a Keras object.
class KindOptions {
 public:
  /// `defaults` is the kind as resolved by Registry::make(); null for a kind with required options.
  KindOptions(const RegistryBase& table, std::string kind, const ConfigNode& defaults = {});

  const std::string& kind() const { return kind_; }
  /// Returns whether the kind has an option with this name.
  bool has(std::string_view option) const;
  /// Adds an option unless this value is its default.
  void add(const std::string& option, const Json& value);
  void add(const std::string& option, ConfigNode value);
  bool empty() const { return options_.empty(); }
  /// Returns {kind: options}, or the bare name if there are none.
  ConfigNode node() const;

 private:
  bool is_default(const std::string& option, const Json& value) const;

  std::string kind_;
  std::vector<std::string> fields_;
  ConfigNode defaults_;
  std::vector<ConfigNode::Entry> options_;
};

}  // namespace dtrain
