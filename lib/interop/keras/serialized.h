// Objects that Keras serialized (losses, metrics, optimizers, schedules) as kinds of dtrain's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/node.h"
#include "config/registry.h"

namespace dtrain {

/// The class or function, and the options, of an object in a file of Keras's.
struct KerasObject {
  std::string name;
  std::string function =
      {};  ///< the function that the class applies (MeanMetricWrapper); "" for most classes
  Json options = Json::object();

  /// The kind of dtrain's with the name, or else the function; "" if dtrain has neither.
  std::string kind_in(const RegistryBase& table) const;
  /// What messages call the object.
  const std::string& shown() const { return function.empty() ? name : function; }
};

/// Reads a name, a function or {class_name, config}, as Keras 1, 2 and 3 write them.
KerasObject read_keras_object(const Json& written);

/// Returns an option's value for a configuration. Numbers that Keras kept as float32 get their few digits
/// back: 0.01 for 0.009999999776482582.
ConfigNode option_of_keras(const Json& value);

/// The options of a kind of dtrain's, as they are collected from those of an object of Keras's.
class KindOptions {
 public:
  /// `defaults`: the kind as Registry::make() resolves it; null for a kind that has required options.
  KindOptions(const RegistryBase& table, std::string kind, const ConfigNode& defaults = {});

  const std::string& kind() const { return kind_; }
  /// Whether the kind has an option of this name.
  bool has(std::string_view option) const;
  /// Adds an option, unless it has this value anyway.
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
