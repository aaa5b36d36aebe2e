// The model section of a configuration as users write it: layers, their common keys, blocks and parameters.
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

/// A name given by the user: parts of letters, digits, '_', '-' and '.', separated by '/' as in the names of
/// layers within blocks; at most 200 characters in total.
struct Name {
  std::string text;
  Mark mark;
};

/// One name, or a list of at least one.
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

/// Returns one name as a scalar, several names as a list.
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

/// A model input: shape and dtype of a sample.
struct InputSpec {
  OrAuto<Shape> shape;
  DType dtype = DType::float32;
  static const Schema<InputSpec>& schema();
};

/// `{segment: NAME}`: layers with the same name are recomputed together.
struct RecomputeSegment {
  Name name;
  static const Schema<RecomputeSegment>& schema();
};

/// The `recompute:` option: true recomputes the layer by itself; {segment: NAME} recomputes it together with
/// the adjacent layers of the same segment.
struct Recompute {
  bool on = false;
  std::optional<RecomputeSegment> segment;  // nullopt: recomputed by itself
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
  bool ignore_mask = false;                  // the option of a layer; blocks do not have it
  OptionalRegularizer activity_regularizer;  // the option of a layer; blocks do not have it
  int64_t repeat = 1;                        // the option of a block; layers do not have it
  static const Schema<LayerKeys>& layer_schema();
  static const Schema<LayerKeys>& block_schema();
};

/// Values of a block's parameters, or their defaults, by name.
using BlockParameters = std::map<std::string, ConfigNode>;

/// A reusable part of a model: an entry of `blocks:`.
struct Block {
  BlockParameters parameters;
  std::vector<ConfigNode> layers;
};

/// Parses the `blocks:` section. Reports invalid names, and names of blocks that are also names of layers.
std::map<std::string, Block> parse_blocks(const ConfigNode& node, Diagnostics& diagnostics);
/// Returns the JSON schema of one block.
Json block_json_schema();

/// Returns `node` with every scalar "$name" at any depth replaced by the parameter's value. `parameters` is
/// null outside blocks.
ConfigNode substitute(const ConfigNode& node, const BlockParameters* parameters, Diagnostics& diagnostics);

/// One item of a list of layers: a layer or a use of a block.
struct LayerSpec {
  ConfigNode kind;     // a scalar
  ConfigNode options;  // the options without the common keys, which are in `keys`
  LayerKeys keys;
  bool known = true;  // false if a $name has no value, or if `shared_with` could not be parsed
};

/// Splits the options of a layer into the common keys (the keys of `schema`) and the layer's own keys, whose
/// names are `fields`. Reports and removes keys that look like a misspelt common key.
LayerSpec take_keys(const ConfigNode& kind, const ConfigNode& options, const Schema<LayerKeys>& schema,
                    const std::vector<std::string>& fields, Diagnostics& diagnostics);

}  // namespace dtrain
