// The model part of a configuration as people write it: layers, their common keys, blocks and parameters.
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

namespace dtrain {

/// A name given by the user: parts of letters, digits, '_', '-' and '.', at most 200 characters in all;
/// parts are separated by '/', as in the names of layers that blocks lay.
struct Name {
  std::string text;
  Mark mark;
};

/// One name, or a list of at least one.
struct Names {
  std::vector<ConfigNode> items;  // scalars
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

/// One name as a scalar, several as a list.
ConfigNode write_names(const std::vector<std::string>& names);

/// What is written at the top.
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

/// Layers whose activations are recomputed together, by the name that they all give.
struct RecomputeSegment {
  Name name;
  static const Schema<RecomputeSegment>& schema();
};

/// `recompute:` - true, by itself; or {segment: NAME}, together with the layers beside it that say the same.
struct Recompute {
  bool on = false;
  std::optional<RecomputeSegment> segment;  // nothing: by itself
};

template <>
struct Codec<Recompute> {
  static bool parse(const ConfigNode& node, const std::string& where, Recompute& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Recompute& value);
  static Json schema();
};

/// The keys that every layer has beside its own options.
struct LayerKeys {
  std::optional<Name> name;
  std::optional<Names> inputs;
  bool trainable = true;
  std::optional<WrittenDevice> device;
  Recompute recompute;
  std::optional<Name> shared_with;
  int64_t repeat = 1;  // of blocks only
  static const Schema<LayerKeys>& layer_schema();
  static const Schema<LayerKeys>& block_schema();
};

/// Values of a block's parameters, or their defaults, by name.
using BlockParameters = std::map<std::string, ConfigNode>;

/// A named piece of a model.
struct Block {
  BlockParameters parameters;
  std::vector<ConfigNode> layers;
};

/// The `blocks:` part. Reports names that are no names or that mean something else.
std::map<std::string, Block> parse_blocks(const ConfigNode& node, Diagnostics& diagnostics);
/// The schema of one block, for the reference.
Json block_json_schema();

/// `node` with every scalar "$name" in it, however deep, replaced by the parameter's value. `parameters` is
/// null outside of blocks.
ConfigNode substitute(const ConfigNode& node, const BlockParameters* parameters, Diagnostics& diagnostics);

/// A layer or the use of a block, as it stands in a list of layers.
struct LayerSpec {
  ConfigNode kind;     // a scalar
  ConfigNode options;  // its own; the common keys are in `keys`
  LayerKeys keys;
  bool known = true;  // every $name in it has a value, and whose options it has is known
};

/// Takes the common keys (those of `schema`) from among the options, whose own names are `fields`. Reports,
/// and takes away, what looks like a misspelt common key.
LayerSpec take_keys(const ConfigNode& kind, const ConfigNode& options, const Schema<LayerKeys>& schema,
                    const std::vector<std::string>& fields, Diagnostics& diagnostics);

}  // namespace dtrain
