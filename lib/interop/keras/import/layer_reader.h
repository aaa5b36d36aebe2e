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

/// Reads the config of one layer. An option that dtrain lacks is reported as a problem, unless its value has
/// no effect. Initializers, regularizers and constraints that dtrain lacks are left out instead, because they
/// only matter in training.
class KerasLayerReader {
 public:
  /// `keras_major`: the major version of Keras that wrote the file; 3 if it is unknown.
  KerasLayerReader(std::string class_name, const Json& config, int keras_major)
      : class_name_(std::move(class_name)), config_(config), keras_major_(keras_major) {}

  const std::string& class_name() const { return class_name_; }
  /// Reads a layer that is the value of the option `key`, and returns it as {kind: options}. Returns null if
  /// the option is missing. `classes`: the classes that dtrain supports for this option; an empty list allows
  /// all classes. `skipped`: keys of the inner layer that have no effect. Adds the inner layer's problems and
  /// ignored settings to problems() and left_out().
  ConfigNode layer(const char* key, std::initializer_list<std::string_view> classes,
                   std::initializer_list<std::string_view> skipped);
  /// Returns the value of an option; nullptr if it is missing or null.
  const Json* find(const char* key) const;
  double number(const char* key, double otherwise) const;

  /// Returns the options with these names. Activations, initializers, regularizers and constraints are
  /// converted to dtrain's notation. Reports all other keys of the config as problems, unless they have no
  /// effect.
  ConfigNode options(const std::vector<std::string>& names);
  /// Marks keys as already read, or as keys without effect.
  void skip(std::initializer_list<std::string_view> keys);
  /// Returns the layer's `activity_regularizer` (a penalty on its outputs, which every Keras layer may have)
  /// in dtrain's notation; null if the layer has none or if dtrain lacks this regularizer.
  ConfigNode activity_regularizer();
  /// Adds a problem if the option has a value other than `value`. A missing option is allowed. A list of
  /// equal numbers counts as one number.
  void expect(const char* key, const Json& value);
  /// Reads the option `groups` of a convolution. The value 1 is skipped. Other values are problems if the
  /// layer `kind` has no such option.
  void read_groups(const std::string& kind);
  /// Converts the value of an `activation` option to dtrain's notation. Returns null for the linear
  /// activation.
  ConfigNode activation(const Json& written);
  /// Requires that the option `key`, an axis or a list of one axis, is the last axis of the layer's input.
  /// Because the reader does not know the rank of the input, the caller must compare last_axis() with it.
  void expect_last_axis(const char* key);
  /// Requires that the option `key`, an integer or a list of one integer, is the width of the layer's first
  /// input. If the option is missing, it has this width by default. Because the reader does not know the
  /// input, the caller must compare output_width() with the width of the input.
  void expect_input_width(const char* key);

  void add_problem(std::string problem) { problems_.push_back(std::move(problem)); }
  /// Returns phrases that describe the options that dtrain does not support: "has groups: 2".
  const std::vector<std::string>& problems() const { return problems_; }
  /// Returns the settings that were ignored because they have no effect on predictions: "kernel_constraint:
  /// MyConstraint".
  const std::vector<std::string>& left_out() const { return left_out_; }
  /// Returns the axis that must be the last axis of the input, see expect_last_axis(). The batch axis is axis
  /// 0. Returns nullopt if no axis is required.
  std::optional<int64_t> last_axis() const { return last_axis_; }
  /// Returns the size that the last axis of the layer's output must have, see expect_input_width(). Returns
  /// nullopt if no size is required.
  std::optional<int64_t> output_width() const { return output_width_; }

 private:
  /// Returns an initializer, a regularizer or a constraint in dtrain's notation; null if dtrain lacks it.
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

/// Returns a function for LayerFormats::from_keras, for a layer whose options have the same names in dtrain
/// as in Keras.
std::function<ConfigNode(KerasLayerReader&)> options_of_keras(std::string kind);
/// Like options_of_keras(), but for a layer that may have the option `groups` in Keras (see read_groups()).
std::function<ConfigNode(KerasLayerReader&)> image_options_of_keras(std::string kind);

}  // namespace dtrain
