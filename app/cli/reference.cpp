#include "cli/reference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/reference_types.h"
#include "config/node.h"
#include "config/schema.h"
#include "config/yaml/scalar.h"
#include "interop/layer_formats.h"

namespace dtrain {

namespace {

/// Returns a sentence that names the file formats for export and import, and the layer types that each format
/// does not support.
std::string formats_of_layers() {
  const auto format = [](const char* name, bool (*has)(const LayerFormats&)) {
    std::vector<std::string> missing;
    for (const LayerFormats& row : all_layer_formats())
      if (!has(row)) missing.push_back("`" + row.kind + "`");
    return missing.empty() ? name : fmt::format("{} (except {})", name, fmt::join(missing, ", "));
  };
  return fmt::format("Every layer can be [exported](exporting.md) to {}, {} and {}, and imported from {}.",
                     format("Keras", [](const LayerFormats& row) { return row.to_keras != nullptr; }),
                     format("ONNX", [](const LayerFormats& row) { return row.onnx != nullptr; }),
                     format("PyTorch", [](const LayerFormats& row) { return row.torch != nullptr; }),
                     format("Keras", [](const LayerFormats& row) { return row.from_keras != nullptr; }));
}

/// A type of a registry, such as the optimizer `adam`.
struct Kind {
  std::string name;
  const Json* options;  // the JSON schema of its options
  std::string alone;    // "short for {rate: ...}", if a bare value is accepted
};

bool is_object(const Json& type) {
  return type.is_string() && type.as_string() == "object";
}

/// Returns `schema` if it describes a mapping; otherwise the first of its alternatives that describes a
/// mapping, or null if there is none.
const Json* mapping_in(const Json& schema) {
  if (const Json* type = schema.find("type");
      type && (is_object(*type) ||
               (type->is_array() && std::any_of(type->items().begin(), type->items().end(), is_object))))
    return &schema;
  for (const char* keyword : {"anyOf", "oneOf"})
    if (const Json* choices = schema.find(keyword))
      for (const Json& choice : choices->items())
        if (const Json* found = mapping_in(choice)) return found;
  return nullptr;
}

/// Returns the description of the short form that Schema::positional defines; "" if the schema has no short
/// form.
std::string short_form_in(const Json& schema) {
  const Json* choices = schema.find("anyOf");
  if (!choices) return "";
  for (const Json& choice : choices->items()) {
    const Json* description = choice.find("description");
    if (description && description->as_string().starts_with("short for")) return description->as_string();
    if (std::string found = short_form_in(choice); !found.empty()) return found;
  }
  return "";
}

std::vector<Kind> kinds_in(const Json& registry) {
  std::vector<Kind> kinds;
  for (const Json& choice : registry.at("oneOf").items()) {
    // Null if this alternative is a single value, which is a short form.
    const Json* mapping = mapping_in(choice);
    if (!mapping) continue;
    const auto& [name, options] = mapping->at("properties").entries().front();
    kinds.push_back({name, mapping_in(options), short_form_in(options)});
  }
  return kinds;
}

std::string sentence(std::string text) {
  if (!text.empty() && !text.ends_with('.')) text += '.';
  return text;
}

/// Returns a table of the keys of a mapping. The keys `left_out` are omitted.
std::string key_table(const Json& mapping, const std::vector<std::string>& left_out = {}) {
  std::string rows;
  std::vector<std::string> required;
  if (const Json* names = mapping.find("required"))
    for (const Json& name : names->items()) required.push_back(name.as_string());
  for (const auto& [name, property] : mapping.at("properties").entries()) {
    if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
    const Json* description = property.find("description");
    const Json* value = property.find("default");
    const bool needed = std::find(required.begin(), required.end(), name) != required.end();
    rows += fmt::format("| `{}` | {} | {} | {} |\n", name, in_table(value_type(property)),
                        needed  ? "**required**"
                        : value ? "`" + in_table(yaml_text(*value)) + "`"
                                : "",
                        in_table(description ? description->as_string() : ""));
  }
  return rows.empty() ? "" : "| key | value | default | meaning |\n|---|---|---|---|\n" + rows + "\n";
}

/// Returns a table of keys (see key_table()) for each mapping that is nested in a mapping, such as
/// `input: {distribution: ...}` or `inputs: {image: {shape: ...}}`. Consecutive mappings with identical
/// tables share one table.
std::string inner_tables(const Json& mapping) {
  // Each pair contains the names of the keys that share a table, and this table.
  std::vector<std::pair<std::string, std::string>> tables;
  for (const auto& [name, property] : mapping.at("properties").entries()) {
    const Json* inner = mapping_in(property);
    const Json* values = property.find("additionalProperties");
    const Json* each = values && values->is_object() ? mapping_in(*values) : nullptr;
    const Json* shown = each ? each : inner;
    if (!shown || !shown->find("properties")) continue;
    const std::string whose = (each ? "each entry of `" : "`") + name + "`";
    const std::string table = key_table(*shown);
    if (!tables.empty() && tables.back().second == table)
      tables.back().first += " and of " + whose;
    else
      tables.emplace_back(whose, table);
  }
  std::string text;
  for (const auto& [whose, table] : tables) text += fmt::format("Keys of {}:\n\n{}", whose, table);
  return text;
}

std::string yaml_block(const std::string& text) {
  return "```yaml\n" + text + "\n```\n\n";
}

/// Returns a type as written in its schema's example, or its bare name if there is no example.
std::string example_of(const Kind& kind) {
  const Json* examples = kind.options->find("examples");
  return examples ? fmt::format("{}: {}", kind.name, yaml_text(examples->items().front())) : kind.name;
}

/// Returns the text of one registry: a section for each type with options or an example, and a table of the
/// other types.
std::string registry_section(const Json& registry, const std::vector<std::string>& common_keys = {}) {
  std::string sections, plain;
  for (const Kind& kind : kinds_in(registry)) {
    const std::string doc = sentence(kind.options->at("description").as_string());
    const std::string table = key_table(*kind.options, common_keys);
    if (table.empty() && !kind.options->find("examples")) {
      plain += fmt::format("| `{}` | {} |\n", kind.name, in_table(doc));
      continue;
    }
    sections += fmt::format("### {}\n\n{}\n\n{}{}", kind.name, doc, yaml_block(example_of(kind)), table);
    if (!kind.alone.empty()) sections += fmt::format("A value alone is {}.\n\n", in_code(kind.alone));
    sections += inner_tables(*kind.options);
  }
  if (!plain.empty()) plain = "| type without options | meaning |\n|---|---|\n" + plain + "\n";
  return plain + sections;
}

/// Adds links for the top-level keys that have their own section.
std::string with_links(std::string table) {
  for (const std::string name : {"model", "dataset", "train", "checkpoint"}) {
    const std::string cell = "| `" + name + "` |";
    if (const size_t at = table.find(cell); at != std::string::npos)
      table.replace(at, cell.size(), fmt::format("| [`{0}`](#{0}) |", name));
  }
  return table;
}

constexpr const char* kIntroduction = R"(# Reference of configurations

This page lists all keys and types of a configuration, with their options and defaults, and an example of each type.
`dtrain schema --markdown` prints this page; `dtrain schema` prints a JSON schema with the same content for editors.

A *type* (of layer, loss, optimizer, ...) with options is written as a mapping with one key,
`adam: {learning_rate: 0.01}`. If all options have their default values, the name of the type is enough: `adam`. If a
type has exactly one required option, the value of this option is enough: `dense: 2`. Keras's names are also accepted
(`Dense`, `mse`). Shapes describe one sample, without the batch axis. Images are [height, width, channels]. A number may
be a fraction, such as `1/255`. A duration is a number and a unit (`90 seconds`, `10 minutes`, `8 hours`, `2 days`). The
length of a schedule is a number of steps (`500`) or of epochs (`5 epochs`). The default `null` means that a key is not
set.

)";

constexpr const char* kRunExample = R"(name: digits
seed: 1
model:
  inputs: {image: [64]}
  layers:
    - dense: {units: 64, activation: relu}
    - dense: {units: 10}
dataset:
  train: {synthetic: {samples: 1000, target: {classes: 10}}}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 5
  batch_size: 32
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.001}}
  metrics: [accuracy]
checkpoint: {every: 1 epoch, keep: 2, best: {monitor: loss}})";

constexpr const char* kModelExample = R"(model:
  inputs: {image: [28, 28], hint: {shape: [4], dtype: float32}}
  blocks:
    body:
      parameters: {units: 8}
      layers:
        - dense: {units: $units, activation: relu}
  layers:
    - flatten: {inputs: image}
    - body: {units: 16, repeat: 2}
    - concatenate: {name: both, inputs: [body_1, hint]}
    - dense: {name: scores, units: 10}
  outputs: scores)";

const std::string kReaders =
    R"(A split has one reader. File names are relative to `root`. Set `rows: [0, 1000]` beside the reader to use
only the first 1000 samples. With `target: {input: image}`, the target is the input `image` after the transforms.

A split without a reader takes samples from another split. The other split then no longer contains these samples:

```yaml
train: {csv: train.csv}
validation: {split: {of: train, fraction: 0.15, stratify: true, seed: 1}}
```

)";

/// Writes the sections from the JSON schema of a run.
class Reference {
 public:
  explicit Reference(const Json& schema) : schema_(schema), definitions_(schema.at("$defs")) {}

  std::string str() const {
    std::string text = kIntroduction + run() + model() + dataset();
    text += registry("Strategies", "strategy",
                     "Values of `strategy`. A strategy distributes the run over devices. `devices: auto` "
                     "uses all GPUs, or the CPU if the machine has no GPU.");
    text += train() + checkpoint();
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
  }

 private:
  /// Returns the mapping under a top-level key.
  const Json& part(const char* key) const { return *mapping_in(schema_.at("properties").at(key)); }

  std::string registry(const char* title, const char* noun, const std::string& introduction) const {
    return fmt::format("## {}\n\n{}\n\n{}", title, introduction, registry_section(definitions_.at(noun)));
  }

  std::string run() const {
    return fmt::format(
        "## The run\n\nA configuration has these top-level keys. `model`, `dataset` and `strategy` may be in "
        "separate files.\n\n{}{}",
        yaml_block(kRunExample), with_links(key_table(schema_)));
  }

  std::string model() const {
    const Json& keys = part("model");
    const Json& layer_keys = definitions_.at("layer_keys");
    std::vector<std::string> common;
    for (const auto& [name, property] : layer_keys.at("properties").entries()) common.push_back(name);
    std::string text = fmt::format("## model\n\n{}\n\n{}{}", sentence(keys.at("description").as_string()),
                                   yaml_block(kModelExample), key_table(keys));
    text +=
        "A block is used like a layer. With `repeat: n`, n copies of the block follow each other. The names "
        "of the layers in a block are local to the block, and `input` is the name of the block's input.\n\n";
    text += inner_tables(keys);
    text += fmt::format(
        "## Layers\n\n{}\n\nIn addition to its own options, every layer has these keys:\n\n{}{}",
        formats_of_layers(), key_table(layer_keys), registry_section(definitions_.at("layer"), common));
    text += registry("Activations", "activation", "Values of a layer's option `activation`.");
    text += registry(
        "Initializers", "initializer",
        "Initial values of parameters. Random values depend only on the seed and the parameter's name.");
    text += registry("Regularizers", "regularizer",
                     "Penalties on weights: values of options such as `kernel_regularizer` of a layer. A "
                     "penalty is added to the loss, and its gradient is added to the gradient of the loss. "
                     "Weights that are not trained have no penalty.");
    return text + registry("Constraints", "constraint",
                           "Constraints on weights: values of options such as `kernel_constraint` of a "
                           "layer. A constraint changes the weights after each update.");
  }

  std::string dataset() const {
    const Json& keys = part("dataset");
    std::string text = fmt::format("## dataset\n\n{}\n\n{}{}", sentence(keys.at("description").as_string()),
                                   key_table(keys), inner_tables(keys));
    text += registry("Readers", "reader", kReaders + drawn_split() + windows());
    text += registry("Transforms", "transform",
                     "Operations on samples, applied in the order in which they are listed.");
    text += registry("Augmentations", "augmentation",
                     "Values of the dataset's `augment`. Augmentations change the training images randomly "
                     "before the transforms are applied (`mix_up` and `cut_mix`: after the transforms). The "
                     "random numbers are drawn again for every image in every epoch.");
    return text + registry("Caches", "cache",
                           "Values of the dataset's `cache`. A cache stores samples that have been read, so "
                           "that later epochs read them faster.");
  }

  /// Returns a text with a table of the keys of `windows`.
  std::string windows() const {
    std::string text =
        "\n\nFor time series, a split can have the key `windows` beside its reader (csv, npy or hdf5). "
        "`windows` has these keys:\n\n" +
        key_table(*mapping_in(definitions_.at("windows")));
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  /// Returns a text with a table of the keys of `split`, which makes a split from samples of another split.
  std::string drawn_split() const {
    std::string text = "Keys of `split`:\n\n";
    for (const Json& choice : definitions_.at("split").at("anyOf").items())
      if (const Json* keys = choice.find("properties")) text += key_table(keys->at("split"));
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  std::string train() const {
    const Json& keys = part("train");
    std::string text = fmt::format("## train\n\n{}\n\n{}Keys of each entry of `groups`:\n\n{}",
                                   sentence(keys.at("description").as_string()), key_table(keys),
                                   key_table(*mapping_in(keys.at("properties").at("groups").at("items"))));
    text += registry(
        "Losses", "loss",
        "One loss for every output of the model, or a mapping from outputs to losses: `loss: {digit: "
        "..., size: ...}`.");
    text += registry(
        "Metrics", "metric",
        "Metrics are reported in addition to the loss: one list for every output, or a mapping from "
        "outputs to lists: `metrics: {digit: [accuracy, auc], size: [r2_score]}`. Under `metrics`, all "
        "rows count equally; under `weighted_metrics`, each row counts with its weight.");
    text += registry("Optimizers", "optimizer", "Optimizers update the weights from their gradients.");
    text += registry("Learning rates", "learning_rate_schedule", "Values of an optimizer's `learning_rate`.");
    return text + registry("Callbacks", "callback", "Callbacks monitor a run, and may change or end it.");
  }

  std::string checkpoint() const {
    const Json& keys = part("checkpoint");
    return fmt::format("## checkpoint\n\n{}\n\n{}{}", sentence(keys.at("description").as_string()),
                       key_table(keys), inner_tables(keys));
  }

  const Json& schema_;
  const Json& definitions_;
};

}  // namespace

std::string reference_markdown(const Json& schema) {
  return Reference(schema).str();
}

}  // namespace dtrain
