// The model section of a configuration, in the form in which users write it: layers, their common keys,
// blocks and parameters.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor_spec.h"
#include "config/or_auto.h"
#include "config/schema.h"
#include "device/written_device.h"
#include "nn/pretrained.h"
#include "nn/regularizer.h"

namespace dtrain {

/// A name that the user gave. It may contain letters, digits, '_', '-' and '.', and has at most 200
/// characters. A '/' separates the parts of the name, as in the names of layers within blocks.
struct Name {
  std::string text;
  Mark mark;
};

/// One name, or a list of one or more names.
struct Names {
  std::vector<ConfigNode> items;  // each is a scalar
};

template <>
struct Codec<Name> {
  static bool parse(const ConfigNode& node, const std::string& where, Name& out, Diagnostics& diagnostics);
  static ConfigNode write(const Name& value) { return Codec<std::string>::write(value.text); }
  static Json schema() { return json_type("string"); }
};

template <>
struct Codec<Names> {
  static bool parse(const ConfigNode& node, const std::string& where, Names& out, Diagnostics& diagnostics);
  static ConfigNode write(const Names& value);
  static Json schema();
};

/// Writes a single name as a scalar and several names as a list.
ConfigNode write_names(const std::vector<std::string>& names);

/// The top-level keys of the model section.
struct ModelSpec {
  ConfigNode inputs, blocks;
  std::vector<ConfigNode> layers;
  std::optional<Names> outputs;
  std::optional<Patterns> freeze;
  std::optional<PretrainedWeights> weights;
  static const Schema<ModelSpec>& schema();
};

/// A model input: the shape of one sample, and its dtype.
struct InputSpec {
  OrAuto<Shape> shape;
  DType dtype = DType::float32;
  static const Schema<InputSpec>& schema();
};

/// `{segment: NAME}`: consecutive layers with the same name are recomputed together.
struct RecomputeSegment {
  Name name;
  static const Schema<RecomputeSegment>& schema();
};

/// The `recompute:` option. With true, the layer is recomputed alone. With {segment: NAME}, it is recomputed
/// together with the adjacent layers of the same segment.
struct Recompute {
  bool on = false;
  std::optional<RecomputeSegment> segment;  // nullopt if the layer is recomputed alone
};

template <>
struct Codec<Recompute> {
  static bool parse(const ConfigNode& node, const std::string& where, Recompute& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Recompute& value);
  static Json schema();
};

/// The keys that every layer has in addition to its own options.
struct LayerKeys {
  std::optional<Name> name;
  std::optional<Names> inputs;
  bool trainable = true;
  std::optional<WrittenDevice> device;
  Recompute recompute;
  std::optional<Name> shared_with;
  bool ignore_mask = false;                  // only layers have this option, blocks do not
  OptionalRegularizer activity_regularizer;  // only layers have this option, blocks do not
  int64_t repeat = 1;                        // only blocks have this option, layers do not
  static const Schema<LayerKeys>& layer_schema();
  static const Schema<LayerKeys>& block_schema();
};

/// The parameters of a block by name, with their default values or the values of one use of the block.
using BlockParameters = std::map<std::string, ConfigNode>;

/// A reusable part of a model, which is an entry of `blocks:`.
struct Block {
  BlockParameters parameters;
  std::vector<ConfigNode> layers;
};

/// Parses the `blocks:` section. Reports an error if a name is invalid, or if it is also the name of a layer.
std::map<std::string, Block> parse_blocks(const ConfigNode& node, Diagnostics& diagnostics);
/// Returns the JSON schema of one block.
Json block_json_schema();

/// Returns `node` with each scalar "$name", at any depth, replaced by the value of the parameter `name`.
/// `parameters` is null outside blocks.
ConfigNode substitute(const ConfigNode& node, const BlockParameters* parameters, Diagnostics& diagnostics);

/// One item of a list of layers. An item is a layer or a use of a block.
struct LayerSpec {
  ConfigNode kind;     // a scalar
  ConfigNode options;  // options without the common keys; these are in `keys`
  LayerKeys keys;
  bool known = true;  // false if a $name has no value, or if `shared_with` could not be parsed
};

/// Splits the options of a layer into common keys (the keys of `schema`) and the layer's own options, whose
/// names are `fields`. If a key is neither of them but looks like a misspelt common key, reports an error and
/// removes it.
LayerSpec take_keys(const ConfigNode& kind, const ConfigNode& options, const Schema<LayerKeys>& schema,
                    const std::vector<std::string>& fields, Diagnostics& diagnostics);

}  // namespace dtrain
