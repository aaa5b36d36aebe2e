#include "interop/keras/import/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "interop/keras/files/json.h"
#include "interop/keras/import/serialized.h"
#include "interop/training_formats.h"

namespace dtrain {

namespace {

constexpr int64_t kKerasBuckets = 200;  // Keras's default number of buckets for AUC

/// Returns true for options that do not change the metric's result.
bool has_no_effect(const std::string& key, const Json& value) {
  if (key == "name" || key == "dtype" || key == "fn" || value.is_null()) return true;
  if (key == "axis") return value.is_int() && value.as_int() == -1;
  if (key == "summation_method") return value.is_string() && value.as_string() == "interpolation";
  return key == "num_regressors" && value.is_int() && value.as_int() == 0;
}

bool is_equal(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number())
    return static_cast<float>(a.as_double()) == static_cast<float>(b.as_double());
  return a.dump() == b.dump();
}

/// Returns an option in the result of keras_metric(); nullptr if the option is missing.
const Json* option_in(const Json& keras_config, const std::string& key) {
  return keras_config.is_object() ? keras_config.at("config").find(key) : nullptr;
}

/// Reads the metrics of one output.
class MetricReader {
 public:
  MetricReader(const KerasOutput& output, const KerasWriter& writer, bool is_only_output,
               std::vector<std::string>& left_out)
      : output_(output),
        writer_(writer),
        prefix_(is_only_output ? "" : output.name + ": "),
        left_out_(left_out) {
    if (output.loss) target_ = output.loss->target(output.spec, [](const std::string&) {});
  }

  /// Reads one metric or a list of metrics. Lists may be nested.
  void read(const Json& written) {
    if (written.is_array())
      for (const Json& one : written.items()) read(one);
    else if (!written.is_null())
      read_one(read_keras_object(written));
  }
  std::vector<ConfigNode> take() { return std::move(metrics_); }

 private:
  void leave_out(const KerasObject& object, const std::string& why) {
    left_out_.push_back(fmt::format("{}the metric {}: {}", prefix_, object.shown(), why));
  }

  void read_one(const KerasObject& object) {
    std::string kind = object.kind_in(registry<Metric>());
    if (kind.empty()) return leave_out(object, "dtrain has no metric of this name");
    if (!target_) return leave_out(object, "the output has no loss");
    if (kind == "accuracy" && writer_.is_alone && output_.loss.name == "binary_crossentropy")
      // With the loss binary_crossentropy, the accuracy of Keras 1 to 2.3 is a binary accuracy, for any
      // number of columns.
      kind = "binary_accuracy";
    Diagnostics missing;  // errors about required options
    const Configured<Metric> usual = registry<Metric>().parse(ConfigNode::scalar(kind), missing);
    const bool has_defaults = !missing.has_errors();
    const Json usual_config = has_defaults ? in_keras(usual) : Json();
    const std::string name = own_name(object);
    KindOptions options(registry<Metric>(), kind, has_defaults ? usual.resolved : ConfigNode());
    if (options.has("name") && !name.empty() && name != kind) options.add("name", Json(name));
    std::vector<std::pair<std::string, Json>> others;
    for (const auto& [key, value] : object.options.entries()) {
      if (key == "class_aggregation" && value.is_null()) options.add(key, Json("none"));
      if (has_no_effect(key, value)) continue;
      if (const Json* same = option_in(usual_config, key); same && is_equal(*same, value)) continue;
      if (key == "num_thresholds" && is_equal(value, Json(kKerasBuckets))) continue;
      if (options.has(key)) {
        options.add(key, value);
      } else {
        others.emplace_back(key, value);
      }
    }
    const bool is_accuracy =
        options.empty() && (name == "accuracy" || name == "acc") && kind.ends_with("_accuracy");
    add(object, is_accuracy ? ConfigNode::scalar("accuracy") : options.node(), others);
  }

  void add(const KerasObject& object, const ConfigNode& node,
           const std::vector<std::pair<std::string, Json>>& others) {
    Diagnostics mistakes;
    const Configured<Metric> metric = registry<Metric>().parse(node, mistakes);
    if (mistakes.has_errors()) return leave_out(object, mistakes.items().front().message);
    std::string why;
    if (!metric->check(output_.spec, *target_, [&](const std::string& message) { why = message; }))
      return leave_out(object, why);
    const Json in_keras_too = in_keras(metric);
    if (in_keras_too.is_null())
      return leave_out(object, "for this output, dtrain computes the metric differently than Keras");
    for (const auto& [key, value] : others)
      if (const Json* same = option_in(in_keras_too, key); !same || !is_equal(*same, value))
        return leave_out(object, fmt::format("dtrain has no equivalent of {}: {}", key, value.dump()));
    const ConfigNode* named = node.is_mapping() ? node.entries().front().second.find("name") : nullptr;
    if (!names_.insert(named ? named->text() : metric.name).second)
      return leave_out(object, "it occurs twice");
    metrics_.push_back(node);
  }

  /// Returns Keras's config of the metric for an output with this loss; null if Keras has no metric with the
  /// same result.
  Json in_keras(const Configured<Metric>& metric) const {
    return keras_metric(metric.resolved, output_.loss.value.get(), output_.spec, *target_);
  }

  /// Returns the metric's name. Keras 2 writes it to .h5 files with the output's name as a prefix, which is
  /// removed.
  std::string own_name(const KerasObject& object) const {
    const std::string name = text_at(object.options, "name"), prefix = output_.keras_name + "_";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  }

  const KerasOutput& output_;
  const KerasWriter& writer_;
  std::string prefix_;
  std::optional<TensorSpec> target_;
  std::vector<std::string>& left_out_;
  std::vector<ConfigNode> metrics_;
  std::set<std::string> names_;
};

bool is_serialized(const Json& written) {
  return written.is_object() && value_at(written, "class_name");
}

/// Returns true if every item of the list applies to all outputs, and false if the list has one item per
/// output.
bool is_for_all(const Json& list, size_t outputs, const KerasWriter& writer) {
  const auto& items = list.items();
  const bool is_nested =
      std::any_of(items.begin(), items.end(), [](const Json& item) { return item.is_array(); });
  return outputs == 1 || (writer.major < 3 && !is_nested);
}

}  // namespace

KerasWriter KerasWriter::of(int major, const std::string& version) {
  // Versions 2.0 to 2.3 without the suffix "-tf" belong to the keras package that is separate from
  // TensorFlow. tf.keras has versions such as "2.2.4-tf". TensorFlow 2.3 contains version "2.4.0" of
  // tf.keras.
  constexpr std::array<std::string_view, 4> kAlone{"2.0.", "2.1.", "2.2.", "2.3."};
  const bool is_alone = std::any_of(kAlone.begin(), kAlone.end(),
                                    [&](std::string_view begin) { return version.starts_with(begin); });
  int minor = 0;
  if (const size_t dot = version.find('.'); dot != std::string::npos)
    std::from_chars(version.data() + dot + 1, version.data() + version.size(), minor);
  return {major, minor, major == 1 || (is_alone && !version.ends_with("-tf"))};
}

const Json* said_of(const Json& written, const std::vector<KerasOutput>& outputs, size_t i) {
  const Json* found = &written;
  if (written.is_array())
    found = i < written.items().size() ? &written.items()[i] : nullptr;
  else if (written.is_object() && !is_serialized(written)) {
    found = value_at(written, outputs[i].keras_name.c_str());
    if (!found) found = value_at(written, outputs[i].name.c_str());
  }
  return found && !found->is_null() ? found : nullptr;
}

ConfigNode import_keras_metrics(const Json& written, const std::vector<KerasOutput>& outputs,
                                const KerasWriter& writer, std::vector<std::string>& left_out) {
  std::vector<ConfigNode::Entry> by_output;
  const bool for_all = written.is_array() && is_for_all(written, outputs.size(), writer);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Json* of_output = for_all ? &written : said_of(written, outputs, i);
    if (!of_output) continue;
    MetricReader reader(outputs[i], writer, outputs.size() == 1, left_out);
    reader.read(*of_output);
    std::vector<ConfigNode> metrics = reader.take();
    if (!metrics.empty())
      by_output.push_back(ConfigNode::entry(outputs[i].name, ConfigNode::sequence(std::move(metrics))));
  }
  if (by_output.empty()) return {};
  return outputs.size() == 1 ? by_output.front().second : ConfigNode::mapping(std::move(by_output));
}

}  // namespace dtrain
