#include "train/pretrained_loading.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/name_list.h"
#include "base/pattern.h"
#include "interop/permuted.h"
#include "interop/torch/builder.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

bool matched(const std::optional<Patterns>& patterns, const std::string& name) {
  return patterns && patterns->match(name);
}

std::vector<std::string> file_names(const std::vector<ArrayRef>& weights) {
  std::vector<std::string> names;
  for (const ArrayRef& weight : weights) names.push_back(weight.name);
  return names;
}

/// A weight of the model, which is looked for in the file.
struct Wanted {
  std::string name;
  Shape shape;
};

std::vector<Wanted> weights_of(const Graph& graph) {
  std::vector<Wanted> wanted;
  for (const GraphNode& node : graph.nodes) {
    if (node.shared_with >= 0) continue;
    for (const ParameterSpec& parameter : node.parameters)
      wanted.push_back({node.name + "/" + parameter.name, parameter.shape});
  }
  return wanted;
}

/// Reports patterns of the options `rename`, `skip` and `unused` that match no weight.
void check_patterns(const PretrainedWeights& options, const std::vector<std::string>& of_file,
                    const std::vector<std::string>& of_model, Diagnostics& diagnostics) {
  Patterns renamed;
  for (const auto& [from, to] : options.rename.items) renamed.items.push_back(from);
  renamed.check_each_matches(of_file, "weights.rename", "weight of the file", diagnostics);
  if (options.skip)
    options.skip->check_each_matches(of_model, "weights.skip", "weight of the model", diagnostics);
  if (options.unused)
    options.unused->check_each_matches(of_file, "weights.unused", "weight of the file", diagnostics);
}

/// Returns the name that the model has for a weight of the file. The two names differ for the kernel of a
/// depthwise convolution, which is "depthwise_kernel" in the model but "kernel" in files of Keras 3.
std::string name_in_model(const std::string& name, const std::set<std::string>& of_model) {
  if (of_model.contains(name) || !name.ends_with("/kernel")) return name;
  const std::string depthwise =
      name.substr(0, name.size() - std::string("kernel").size()) + "depthwise_kernel";
  return of_model.contains(depthwise) ? depthwise : name;
}

using Offers = std::vector<std::pair<std::string, const ArrayRef*>>;

/// Returns the weights of the file with the names that they have in the model. Leaves out the weights listed
/// in `unused`.
Offers offers_of(const PretrainedWeights& options, const WeightFile& file,
                 const std::set<std::string>& of_model) {
  Offers offers;
  for (const ArrayRef& weight : file.weights())
    if (!matched(options.unused, weight.name))
      offers.emplace_back(name_in_model(options.rename.apply(weight.name), of_model), &weight);
  return offers;
}

/// Permutes the axes of a PyTorch array to the order of the layer's parameter.
TorchArray in_keras_order(const TorchWeight& weight, const Shape& parameter, const ArrayRef& array) {
  TorchArray converted{array, {}};
  if (weight.axes.empty() || !array.data) return converted;
  const bool fits = array.shape == weight.shape;
  const Shape shape = fits ? permuted(parameter, weight.axes) : array.shape;
  if (shape.rank() != weight.axes.size()) return converted;
  std::vector<int64_t> back(weight.axes.size());
  for (size_t i = 0; i < back.size(); ++i)
    back[static_cast<size_t>(weight.axes[i])] = static_cast<int64_t>(i);
  const auto elements = static_cast<size_t>(array.shape.elements());
  converted.values = permuted(std::span(static_cast<const float*>(array.data), elements), shape, back);
  converted.array.shape = permuted(shape, back);
  converted.array.data = converted.values.data();
  return converted;
}

/// Returns true if a weight of the file can be ignored: this model does not have the weight, and all its
/// elements have a neutral value, with which the weight has no effect.
bool is_neutral(const TorchWeight& weight, const ArrayRef& array) {
  const auto* values = static_cast<const float*>(array.data);
  return weight.parameter < 0 && array.data &&
         std::all_of(values, values + array.shape.elements(), [&](float one) { return one == weight.value; });
}

/// Returns the name of the other bias of an nn.LSTM or nn.RNN: "rnn/bias_hh_l0" for "rnn/bias_ih_l0", and
/// vice versa. Returns "" for other weights.
std::string other_bias(const std::string& name) {
  constexpr std::string_view kOfInput = "/bias_ih_l0", kOfState = "/bias_hh_l0";
  const std::string start = name.substr(0, name.size() - std::min(name.size(), kOfInput.size()));
  if (name.ends_with(kOfInput)) return fmt::format("{}{}", start, kOfState);
  return name.ends_with(kOfState) ? fmt::format("{}{}", start, kOfInput) : "";
}

/// Returns the other bias of an nn.LSTM or nn.RNN. PyTorch adds the two biases; the model has only one bias,
/// which is their sum. Returns null for other weights, and if the two arrays cannot be added.
const ArrayRef* find_other_bias(const std::string& name, const ArrayRef& array, const Offers& offers) {
  const std::string other = other_bias(name);
  if (other.empty()) return nullptr;
  const auto found =
      std::find_if(offers.begin(), offers.end(), [&](const auto& offer) { return offer.first == other; });
  const bool can_add =
      found != offers.end() && array.data && found->second->data && found->second->shape == array.shape;
  return can_add ? found->second : nullptr;
}

/// Returns the sum of two arrays of the same shape.
TorchArray sum_of(const ArrayRef& a, const ArrayRef& b) {
  const auto *of_a = static_cast<const float*>(a.data), *of_b = static_cast<const float*>(b.data);
  TorchArray sum{a, std::vector<float>(of_a, of_a + a.shape.elements())};
  // Zeros are not added, because the sum of -0 and 0 is 0. The addition would change weights of -0 that
  // dtrain has exported.
  for (size_t i = 0; i < sum.values.size(); ++i)
    if (of_b[i] != 0) sum.values[i] += of_b[i];
  sum.array.data = sum.values.data();
  return sum;
}

/// Converts the weights of a PyTorch file to the names and shapes of this model.
Offers from_torch(const Graph& graph, const Offers& offers, std::deque<TorchArray>& arrays) {
  std::map<std::string, TorchWeight> known;
  for (const TorchWeight& weight : torch_weights(graph)) {
    std::string name = weight.key();
    name[name.rfind('.')] = '/';  // separator that WeightFile uses
    known.emplace(name, weight);
  }
  Offers translated;
  for (const auto& [name, array] : offers) {
    const auto found = known.find(name);
    if (name.ends_with("/num_batches_tracked")) continue;  // counter of batch normalization
    if (found == known.end()) {
      translated.emplace_back(name, array);
      continue;
    }
    const TorchWeight& weight = found->second;
    if (is_neutral(weight, *array)) continue;
    const ArrayRef* const other = find_other_bias(name, *array, offers);
    if (weight.parameter < 0) {
      if (!other) translated.emplace_back(name, array);
      continue;
    }
    const GraphNode& node = graph.nodes[static_cast<size_t>(weight.node)];
    const ParameterSpec& parameter = node.parameters[static_cast<size_t>(weight.parameter)];
    arrays.push_back(other ? sum_of(*array, *other) : in_keras_order(weight, parameter.shape, *array));
    translated.emplace_back(node.name + "/" + parameter.name, &arrays.back().array);
  }
  return translated;
}

void match(const Graph& graph, Pretrained& result, Diagnostics& diagnostics) {
  const PretrainedWeights& options = *graph.pretrained;
  const auto report = [&](const std::string& message) {
    diagnostics.error(options.mark, fmt::format("weights: {}: {}", options.from, message));
  };
  const std::vector<Wanted> wanted = weights_of(graph);
  std::vector<std::string> of_model, initial, missing, unused;
  for (const Wanted& weight : wanted) of_model.push_back(weight.name);
  check_patterns(options, file_names(result.file.weights()), of_model, diagnostics);

  const std::set<std::string> known(of_model.begin(), of_model.end());
  Offers offers = offers_of(options, result.file, known);
  if (result.file.layout() == WeightLayout::torch) offers = from_torch(graph, offers, result.of_torch);
  std::map<std::string, const ArrayRef*> offered;
  for (const auto& [name, weight] : offers)
    if (const auto [first, is_first] = offered.emplace(name, weight); !is_first && known.contains(name))
      report(
          fmt::format("the file's weights '{}' and '{}' both match the model's weight '{}'; change `rename`, "
                      "or list one of the two under `unused`",
                      first->second->name, weight->name, name));
  for (const Wanted& weight : wanted) {
    const auto offer = offered.find(weight.name);
    if (matched(options.skip, weight.name))
      initial.push_back(weight.name);
    else if (offer == offered.end())
      missing.push_back(weight.name);
    else if (!offer->second->data)
      report(
          fmt::format("the weight '{}' must have floating point numbers, but '{}' in the file has another "
                      "type; list the model's weight under `skip` to keep its initial value",
                      weight.name, offer->second->name));
    else if (offer->second->shape != weight.shape)
      report(
          fmt::format("expected the shape {} for the weight '{}', but found {} in the file's '{}'; list the "
                      "model's weight under `skip` to keep its initial value",
                      weight.shape.str(), weight.name, offer->second->shape.str(), offer->second->name));
    else
      result.weights.insert(*offer);
  }
  for (const auto& [name, weight] : offers)
    if (!known.contains(name)) unused.push_back(weight->name);
  if (!missing.empty())
    report(
        fmt::format("the file does not contain the model's {}; list weights that keep their initial values "
                    "under `skip`, and "
                    "weights that have other names in the file under `rename`",
                    list_some(missing)));
  if (!unused.empty())
    report(
        fmt::format("this model has no weight for the file's {}; list weights that are not needed under "
                    "`unused`, and weights that have other names in the model under `rename`",
                    list_some(unused)));
  result.description =
      fmt::format("{} of {} weights from {}", result.weights.size(), wanted.size(), result.path);
  if (!initial.empty()) result.description += "; with initial values: " + list_some(initial);
}

/// Returns true if the weights of an embedding are loaded.
bool loads_embedding(const Graph& graph, const Pretrained& pretrained) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& node) {
    return node.kind == "embedding" && pretrained.weights.contains(node.name + "/embeddings");
  });
}

/// Returns true if `other` has the key of `entry` with a different value.
template <class Map>
bool differs(const Map& other, const typename Map::value_type& entry) {
  const auto found = other.find(entry.first);
  return found != other.end() && found->second != entry.second;
}

}  // namespace

void load_vocabularies(RunConfig& config, const std::function<void(const std::string&)>& warn) {
  const std::string& from = config.dataset.vocabulary_from;
  if (from.empty()) return;
  try {
    const Checkpoint checkpoint = load_best_checkpoint(from, warn);
    config.dataset.facts.source.tokens = saved_facts(checkpoint).source.tokens;
    if (config.dataset.facts.source.tokens.empty())
      throw UserError(
          fmt::format("{}: the checkpoint has no vocabulary, because its run was not trained on "
                      "text; expected a checkpoint of a run that was trained on text",
                      checkpoint.path()));
  } catch (const UserError& error) {
    throw error_at(config.place({"dataset", "vocabulary_from"}),
                   fmt::format("vocabulary_from: {}", error.what()));
  }
}

std::vector<std::string> warnings_of_vocabularies(const Graph& graph, const DataFacts& facts,
                                                  const Pretrained& pretrained) {
  std::vector<std::string> warnings;
  const Checkpoint* const checkpoint = pretrained.file.checkpoint();
  if (!checkpoint || pretrained.weights.empty()) return warnings;
  const SourceFacts other = saved_facts(*checkpoint).source;
  const auto warn = [&](const std::string& name, const char* which, const char* units, const char* cure) {
    warnings.push_back(fmt::format(
        "weights: '{0}' has a different {1} than in the run that wrote {2}, so the loaded weights do "
        "not match the {3} of this data; {4}",
        name, which, pretrained.path, units, cure));
  };
  if (loads_embedding(graph, pretrained))
    for (const auto& entry : facts.source.tokens)
      if (differs(other.tokens, entry))
        warn(entry.first, "vocabulary", "tokens",
             "to keep the run's vocabulary, set dataset.vocabulary_from to that run");
  for (const auto& entry : facts.source.categories)
    if (differs(other.categories, entry))
      warn(entry.first, "list of categories", "categories",
           "to keep the run's list, continue the run with the new data: dtrain resume RUN --set "
           "dataset.train=...");
  return warnings;
}

Pretrained load_pretrained(const Graph& graph) {
  Pretrained result;
  try {
    open_best_checkpoint(
        graph.pretrained->from, [&](const std::string& warning) { result.warnings.push_back(warning); },
        [&](const std::string& file) {
          result.path = file;
          result.file = WeightFile::load(file);
        });
    if (result.file.layout() == WeightLayout::onnx)
      throw UserError(
          fmt::format("{}: expected weights of layers, but this is an ONNX model, whose weights belong to "
                      "operators; export the model as .safetensors or .keras",
                      result.path));
  } catch (const UserError& error) {
    throw error_at(graph.pretrained->mark, fmt::format("weights: {}", error.what()));
  }
  Diagnostics diagnostics;
  match(graph, result, diagnostics);
  diagnostics.throw_if_errors();
  return result;
}

}  // namespace dtrain
