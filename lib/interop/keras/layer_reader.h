// The configuration of one Keras layer, as options of a layer of dtrain's.
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

/// Reads the config of a layer. An option that dtrain lacks is a problem unless it has the value that changes
/// nothing; settings that only matter in training (regularizers, constraints) are left out.
class KerasLayerReader {
 public:
  /// `keras_major`: the major version of the Keras that wrote the file, 3 if not known.
  KerasLayerReader(std::string class_name, const Json& config, int keras_major)
      : class_name_(std::move(class_name)), config_(config), keras_major_(keras_major) {}

  const std::string& class_name() const { return class_name_; }
  /// The value of an option; null (the pointer) if the config lacks it or has null.
  const Json* find(const char* key) const;
  double number(const char* key, double otherwise) const;

  /// Returns the options of these names, with initializers and activations in dtrain's form. Further keys of
  /// the config must be without effect, or become problems.
  ConfigNode options(const std::vector<std::string>& names);
  /// Marks a key as read, or without effect.
  void skip(std::initializer_list<std::string_view> keys);
  /// Adds a problem unless the option has this value, or is missing. A list of equal numbers counts as one.
  void expect(const char* key, const Json& value);
  /// An activation in dtrain's form, from an `activation` option; null for linear.
  ConfigNode activation(const Json& written);
  /// Requires the axis, or the only one in a list, to be the last. Checked against the input's rank once it
  /// is known (last_axis()).
  void expect_last_axis(const char* key);

  void add_problem(std::string problem) { problems_.push_back(std::move(problem)); }
  /// Sentences about options that dtrain cannot express: "has groups: 2".
  const std::vector<std::string>& problems() const { return problems_; }
  /// Settings without effect on predictions: "kernel_regularizer: L2".
  const std::vector<std::string>& left_out() const { return left_out_; }
  /// The number of the axis, the batch's counted, that must turn out to be the input's last.
  std::optional<int64_t> last_axis() const { return last_axis_; }

 private:
  ConfigNode initializer(const std::string& key, const Json& written);
  bool is_skipped(std::string_view key) const;
  void check_other(const std::string& key, const Json& value);

  std::string class_name_;
  const Json& config_;
  int keras_major_;
  std::vector<std::string> skipped_, problems_, left_out_;
  std::optional<int64_t> last_axis_;
};

/// JSON as a value of a configuration.
ConfigNode config_of_json(const Json& json);

/// LayerFormats::from_keras of a layer whose options have Keras's names.
std::function<ConfigNode(KerasLayerReader&)> options_of_keras(std::string kind);
/// The same for a layer of images.
std::function<ConfigNode(KerasLayerReader&)> image_options_of_keras(std::string kind);

}  // namespace dtrain
