#include "interop/keras/import/training.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/keras/files/json.h"
#include "interop/keras/import/metrics.h"
#include "interop/keras/import/serialized.h"
#include "interop/training_formats.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace dtrain {

namespace {

bool has_value(const Json& value, double number) {
  return value.is_number() && value.as_double() == number;
}

/// Returns true if an option of a loss, other than `axis`, has no effect in dtrain. Keras's different
/// reductions to a mean are all the same in dtrain, which divides by the sum of the row weights.
bool is_usual_of_loss(const std::string& key, const Json& value) {
  constexpr std::array<std::string_view, 5> kMeans{"sum_over_batch_size", "sum_over_batch", "auto", "mean",
                                                   "mean_with_sample_weight"};
  if (key == "name" || key == "dtype" || key == "fn" || value.is_null()) return true;
  return key == "reduction" && value.is_string() &&
         std::find(kMeans.begin(), kMeans.end(), value.as_string()) != kMeans.end();
}

/// Returns true if an option of an optimizer has no effect in dtrain.
bool is_usual_of_optimizer(const std::string& key, const Json& value) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return true;
  // In Keras, `relative_step` has no effect, because Adafactor limits its steps in the same way with and
  // without it.
  return key == "name" || key == "relative_step" || key == "is_legacy_optimizer" || key == "jit_compile" ||
         key == "ema_momentum" || key == "ema_overwrite_frequency" || (key == "decay" && has_value(value, 0));
}

class TrainingReader {
 public:
  TrainingReader(const Json& config, const KerasWriter& writer, std::vector<KerasOutput> outputs)
      : config_(config), writer_(writer), outputs_(std::move(outputs)) {}

  /// Returns the `train:` section. Throws UserError with a list of everything that dtrain cannot express.
  ConfigNode read() {
    const Json* optimizer = value_at(config_, "optimizer_config");  // the key in .h5 files
    if (!optimizer) optimizer = value_at(config_, "optimizer");
    const Json* loss = value_at(config_, "loss");
    if (loss) add("loss", read_losses(*loss));
    if (!loss) add_problem("the file has no loss");
    if (optimizer) add("optimizer", read_optimizer(read_keras_object(*optimizer)));
    if (!optimizer) add_problem("the file has no optimizer");
    if (!problems_.empty())
      throw UserError(
          fmt::format("dtrain cannot express the training settings in the file; import the model without "
                      "--with-optimizer:\n  {}",
                      fmt::join(problems_, "\n  ")));
    for (const char* key : {"metrics", "weighted_metrics"})
      if (const Json* written = value_at(config_, key))
        add(key, import_keras_metrics(*written, outputs_, writer_, left_out_));
    if (const Json* mode = value_at(config_, "sample_weight_mode"))
      left_out_.push_back(fmt::format("sample_weight_mode: {}", mode->dump()));
    return ConfigNode::mapping(std::move(train_));
  }

  bool is_since_2_11() const { return is_since_2_11_; }
  std::vector<std::string> take_left_out() { return std::move(left_out_); }

 private:
  void add(const char* key, ConfigNode value) {
    if (!value.is_null()) train_.push_back(ConfigNode::entry(key, std::move(value)));
  }
  /// Adds a problem, unless the same problem was added before. Outputs with the same loss have the same
  /// problems.
  void add_problem(std::string problem) {
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end())
      problems_.push_back(std::move(problem));
  }

  /// Returns a single loss if all outputs have the same loss. Otherwise, returns a mapping from the names of
  /// the outputs to their losses.
  ConfigNode read_losses(const Json& written) {
    std::vector<ConfigNode::Entry> losses;
    bool are_equal = true;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Json* loss = said_of(written, outputs_, i);
      if (!loss) add_problem(fmt::format("the output '{}' has no loss", outputs_[i].name));
      if (!loss) continue;
      const ConfigNode node = read_loss(read_keras_object(*loss), weight_of(i));
      Diagnostics mistakes;
      if (!node.is_null()) outputs_[i].loss = registry<Loss>().parse(node, mistakes);
      for (const Diagnostics::Item& item : mistakes.items()) add_problem(item.message);
      losses.push_back(ConfigNode::entry(outputs_[i].name, node));
      are_equal = are_equal && node.to_yaml() == losses.front().second.to_yaml();
    }
    if (losses.empty()) return {};
    return are_equal ? losses.front().second : ConfigNode::mapping(std::move(losses));
  }

  Json weight_of(size_t output) {
    const Json* weights = value_at(config_, "loss_weights");
    if (!weights || weights->dump() == "[]") return 1;
    if (weights->is_number()) return *weights;
    const bool is_short = weights->is_array() && weights->items().size() != outputs_.size();
    const Json* weight = said_of(*weights, outputs_, output);
    if (is_short || (weight && !weight->is_number()))
      add_problem(
          fmt::format("the file has loss_weights: {}; expected a number for each output", weights->dump()));
    return weight && weight->is_number() ? *weight : Json(1);
  }

  ConfigNode read_loss(const KerasObject& object, const Json& weight) {
    const std::string kind = object.kind_in(registry<Loss>());
    if (kind.empty()) {
      add_problem(fmt::format("dtrain has no loss {}", object.shown()));
      return {};
    }
    KindOptions options(registry<Loss>(), kind, registry<Loss>().make(kind).resolved);
    // Only Dice and Tversky have the option `axis`. The other losses always use the last axis.
    const bool has_axis = options.has("axis");
    for (const auto& [key, value] : object.options.entries()) {
      const bool is_axis = key == "axis";
      if (is_axis ? !has_axis && has_value(value, -1) : is_usual_of_loss(key, value)) continue;
      if (is_axis && has_axis && value.is_null())
        add_problem(
            fmt::format("the loss {} has axis: null, which means a sum over the whole batch; dtrain computes "
                        "the loss for each sample, as with axis: [1, 2, 3]",
                        object.shown()));
      else if (options.has(key))
        options.add(key, value);
      else
        add_problem(fmt::format("the loss {} has {}: {}", object.shown(), key, value.dump()));
    }
    if (kind == "huber" && !object.options.entries().empty() && !object.options.find("delta"))
      left_out_.emplace_back(
          "the delta of Huber, because this version of Keras does not save it; dtrain uses 1");
    options.add("weight", weight);
    return options.node();
  }

  ConfigNode read_optimizer(const KerasObject& object) {
    const std::string kind = object.kind_in(registry<Optimizer>());
    if (kind.empty()) {
      add_problem(fmt::format("dtrain has no optimizer {}", object.name));
      return {};
    }
    // An optimizer that was passed to compile() by its name has no options. Since Keras 2.11, every other
    // optimizer has the option `use_ema`.
    const bool is_name = object.options.entries().empty();
    is_since_2_11_ =
        writer_.major >= 3 || object.options.find("use_ema") || (is_name && writer_.is_since(2, 11));
    KindOptions options(registry<Optimizer>(), kind, registry<Optimizer>().make(kind).resolved);
    for (const auto& [key, value] : object.options.entries()) {
      // null means 0 in Keras, but adamw's default is not 0
      if (key == "weight_decay" && value.is_null()) options.add(key, Json(0));
      if (is_usual_of_optimizer(key, value) || key == "decay") continue;
      if (kind == "nadam" && key == "schedule_decay") continue;  // see check_nadam()
      if (key == "learning_rate" || key == "lr")
        options.add("learning_rate",
                    read_rate(value, kind == "nadam" ? nullptr : value_at(object.options, "decay")));
      else if (key == "global_clipnorm" || (key == "clipnorm" && writer_.is_alone))
        add("clip_norm", option_of_keras(value));
      else if (key == "clipvalue")
        add("clip_value", option_of_keras(value));
      else if (options.has(key))
        add_option(options, key, value, object.options);
      else
        add_problem(fmt::format("the optimizer {} has {}: {}{}", object.name, key, value.dump(),
                                key == "clipnorm"
                                    ? ", which clips the gradient of each weight separately; dtrain can only "
                                      "clip the whole gradient (global_clipnorm)"
                                    : ""));
    }
    if (!writer_.is_alone && value_at(object.options, "global_clipnorm") &&
        value_at(object.options, "clipvalue"))
      add_problem(
          fmt::format("the optimizer {} has both global_clipnorm and clipvalue; dtrain would apply them in a "
                      "different order, with the norm first",
                      object.name));
    if (kind == "nadam" && !is_since_2_11_) check_nadam(object);
    // Adagrad of Keras 1 to 2.2 does not have this option. Its accumulators start with 0.
    if (kind == "adagrad" && !value_at(object.options, "initial_accumulator_value"))
      options.add("initial_accumulator_value", Json(0));
    return options.node();
  }

  /// Adds a problem if Nadam's momentum differs from the momentum in Keras 3. In Keras 1 to 2.10, the
  /// momentum in step t is beta_1 * (1 - 0.96^(t * schedule_decay) / 2). tf.keras saves schedule_decay as
  /// `decay`. Later versions of Keras have no such option and use the value 1.
  void check_nadam(const KerasObject& object) {
    constexpr double kUsual = 0.004;
    const Json* decay = value_at(object.options, "schedule_decay");
    if (!decay) decay = value_at(object.options, "decay");
    if (decay && has_value(*decay, 1)) return;
    add_problem(
        fmt::format("the optimizer {} has schedule_decay: {}; with this value, its momentum grows more "
                    "slowly than in Keras 3 and dtrain",
                    object.name, decay ? decay->dump() : Json(kUsual).dump()));
  }

  /// Adds an option. Keras 1 to 2.10 add epsilon to the square root by which they divide. dtrain adds it
  /// under the root, so epsilon is squared, which gives nearly the same results.
  void add_option(KindOptions& options, const std::string& key, const Json& value, const Json& all) {
    const Json* momentum = value_at(all, "momentum");
    const bool is_beside_root = key == "epsilon" && !is_since_2_11_ && value.is_number() &&
                                (options.kind() == "adagrad" ||
                                 (options.kind() == "rmsprop" && (!momentum || has_value(*momentum, 0))));
    if (!is_beside_root) return options.add(key, value);
    const double epsilon = value.as_double();
    options.add(key, Json(epsilon * epsilon));
    left_out_.push_back(
        fmt::format("the position of {}'s epsilon: this version of Keras adds {:g} to the square root, but "
                    "dtrain adds {:g} under the square root",
                    options.kind(), epsilon, epsilon * epsilon));
  }

  /// Returns the learning rate or its schedule. `decay`: the value of the option `decay`, which optimizers of
  /// Keras 1 to 2.10 have; nullptr if the option is missing.
  ConfigNode read_rate(const Json& written, const Json* decay) {
    const bool decays = decay && !has_value(*decay, 0);
    if (written.is_number() && decays)
      return ConfigNode::mapping({ConfigNode::entry(
          "inverse_time_decay",
          ConfigNode::mapping({ConfigNode::entry("initial", option_of_keras(written)),
                               ConfigNode::entry("decay_steps", ConfigNode::scalar("1")),
                               ConfigNode::entry("decay_rate", option_of_keras(*decay))}))});
    if (written.is_number()) return option_of_keras(written);
    if (decays)
      add_problem(
          fmt::format("the optimizer has both a learning rate schedule and decay: {}, but dtrain supports "
                      "only one of them",
                      decay->dump()));
    return read_schedule(read_keras_object(written), written);
  }

  ConfigNode read_schedule(const KerasObject& object, const Json& written) {
    const std::string kind = object.kind_in(registry<Schedule>());
    KindOptions options(registry<Schedule>(), kind);
    bool is_known = !kind.empty();
    const bool warms_up = value_at(object.options, "warmup_target") != nullptr;
    const auto renamed = is_known ? schedule_formats(kind).renamed : decltype(ScheduleFormats::renamed)();
    for (const auto& [key, value] : object.options.entries()) {
      if (key == "name" || value.is_null()) continue;
      std::string own = key;
      for (const auto& [keras, here] : renamed)
        if (keras == key) own = here;
      if (key == "initial_learning_rate" && warms_up) own = "warmup_initial";
      is_known = is_known && options.has(own);
      options.add(own, value);
    }
    if (!is_known) add_problem(fmt::format("dtrain has no schedule {}", written.dump()));
    return is_known ? options.node() : ConfigNode();
  }

  const Json& config_;
  KerasWriter writer_;
  std::vector<KerasOutput> outputs_;
  bool is_since_2_11_ = false;
  std::vector<ConfigNode::Entry> train_;
  std::vector<std::string> problems_, left_out_;
};

std::vector<KerasOutput> outputs_of(const KerasModel& file_model, const Graph& graph) {
  std::vector<KerasOutput> outputs;
  for (const ValueRef& value : graph.outputs) {
    const std::string& name = graph.layer_name(value.node);
    const size_t i = outputs.size();
    outputs.push_back({name, name, graph.spec(value)});
    if (i < file_model.outputs.size())
      outputs[i].keras_name = file_model.layers[static_cast<size_t>(file_model.outputs[i].layer)].name;
  }
  return outputs;
}

}  // namespace

ImportedTraining import_keras_training(const KerasTrainingFile& file, const ImportedModel& imported,
                                       const Graph& graph) {
  if (file.config.is_null())
    throw UserError(
        "the model was not compiled, so the file has no optimizer; import the model without "
        "--with-optimizer");
  ImportedTraining result;
  TrainingReader reader(file.config, KerasWriter::of(file.keras_major, file.keras_version),
                        outputs_of(file.model, graph));
  result.train = reader.read();
  result.left_out = reader.take_left_out();
  Diagnostics mistakes;
  const Configured<Optimizer> optimizer =
      registry<Optimizer>().parse(*result.train.find("optimizer"), mistakes);
  mistakes.throw_if_errors();
  const std::vector<TrainedWeight> trained = trained_weights(file.model, imported, graph);
  const std::vector<KerasWeight>& arrays = file.weights.optimizer;
  auto state = read_optimizer_state(arrays, optimizer, reader.is_since_2_11(), trained, file.kernels);
  if (!state)
    result.left_out.push_back(arrays.empty()
                                  ? std::string("the optimizer's state, because the file does not contain it")
                                  : fmt::format("the optimizer's state: the file has {}, but {} needs a "
                                                "different number of arrays for {}",
                                                format_plural(std::ssize(arrays), "array"), optimizer.name,
                                                format_plural(std::ssize(trained), "weight")));
  else if (!state->iteration)
    result.left_out.push_back(fmt::format(
        "the number of steps, because this version of Keras does not save it with {}", optimizer.name));
  if (state) result.state = std::move(*state);
  for (const KerasModelLayer* layer : imported.moved_channels) {
    const std::string path = imported.names.at(layer) + "/alpha";
    bool has_means = false;
    for (auto& [slot, by_weight] : result.state.slots) {
      const auto alpha = by_weight.find(path);
      if (alpha == by_weight.end()) continue;
      if (!optimizer_formats(optimizer.name).is_factored)
        alpha->second = with_channels_last(alpha->second);
      else
        has_means = by_weight.erase(path) > 0;
    }
    if (has_means)
      result.left_out.push_back(fmt::format(
          "the optimizer's means of {}, because their axes have a different order in the file", path));
  }
  return result;
}

}  // namespace dtrain
