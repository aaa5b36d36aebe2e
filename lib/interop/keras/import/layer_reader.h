// Converts the configuration of one Keras layer to options of a dtrain layer.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/node.h"

namespace dtrain {

/// Reads the config of a layer. An option that dtrain lacks is a problem unless its value has no effect.
/// Initializers, regularizers and constraints that dtrain lacks are left out, because they only matter in
/// training.
class KerasLayerReader {
 public:
  /// `keras_major` is the major version of the Keras that wrote the file; 3 if unknown.
  KerasLayerReader(std::string class_name, const Json& config, int keras_major)
      : class_name_(std::move(class_name)), config_(config), keras_major_(keras_major) {}

  const std::string& class_name() const { return class_name_; }
  /// Reads a layer that is the value of `key`, and returns it as {kind: options}; null if there is none.
  /// `classes`: the classes that it may have (empty: any). `skipped`: keys without effect. Adds the problems
  /// and ignored settings of that layer to problems() and left_out().
  ConfigNode layer(const char* key, std::initializer_list<std::string_view> classes,
                   std::initializer_list<std::string_view> skipped);
  /// Returns the value of an option; nullptr if it is missing or null.
  const Json* find(const char* key) const;
  double number(const char* key, double otherwise) const;

  /// Returns the options with these names, with activations, initializers, regularizers and constraints in
  /// dtrain's form. Further keys of the config become problems unless they have no effect.
  ConfigNode options(const std::vector<std::string>& names);
  /// Marks keys as already read or without effect.
  void skip(std::initializer_list<std::string_view> keys);
  /// Returns the penalty on the outputs, which every layer may have, in dtrain's form; null if there is none
  /// or if dtrain lacks it.
  ConfigNode activity_regularizer();
  /// Adds a problem unless the option has this value or is missing. A list of equal numbers counts as one
  /// number.
  void expect(const char* key, const Json& value);
  /// Converts an `activation` option to dtrain's form; null for linear.
  ConfigNode activation(const Json& written);
  /// Requires the axis, or the only axis of a list, to be the input's last axis. Users of the reader compare
  /// last_axis() with the input's rank, which the reader does not know.
  void expect_last_axis(const char* key);
  /// Requires the option, an integer or a list of one integer, to be the width of the layer's first input,
  /// which is the default. Users of the reader compare output_width() with that width.
  void expect_input_width(const char* key);

  void add_problem(std::string problem) { problems_.push_back(std::move(problem)); }
  /// Returns phrases about options that dtrain does not support: "has groups: 2".
  const std::vector<std::string>& problems() const { return problems_; }
  /// Returns settings without effect on predictions that were ignored: "kernel_constraint: MyConstraint".
  const std::vector<std::string>& left_out() const { return left_out_; }
  /// Returns the index of the axis, counting the batch axis, that must be the input's last axis; nullopt if
  /// there is no such requirement.
  std::optional<int64_t> last_axis() const { return last_axis_; }
  /// Returns the last extent that the layer's output must have; nullopt if there is no such requirement.
  std::optional<int64_t> output_width() const { return output_width_; }

 private:
  /// Returns an initializer, a regularizer or a constraint in dtrain's form; null if dtrain lacks it.
  template <class Base>
  ConfigNode object_of_weight(const std::string& key, const Json& written);
  ConfigNode option(const std::string& key, const Json& written);
  bool is_skipped(std::string_view key) const;
  void check_other(const std::string& key, const Json& value);

  std::string class_name_;
  const Json& config_;
  int keras_major_;
  std::vector<std::string> skipped_, problems_, left_out_;
  std::optional<int64_t> last_axis_, output_width_;
};

/// Converts JSON to a configuration value.
ConfigNode config_of_json(const Json& json);

/// Returns LayerFormats::from_keras for a layer whose options have Keras's names.
std::function<ConfigNode(KerasLayerReader&)> options_of_keras(std::string kind);
/// Like options_of_keras(), for an image layer.
std::function<ConfigNode(KerasLayerReader&)> image_options_of_keras(std::string kind);

}  // namespace dtrain
