// Finds repeated groups of consecutive layers in an imported model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace dtrain {

/// One layer of the flat model. The index of a layer is its position in the model, starting from 0. The
/// model's inputs have negative indices.
struct FlatLayer {
  std::string kind, name;
  ConfigNode options;       // options without name and inputs
  std::string signature;    // kind and options as text
  std::vector<int> inputs;  // indices of the layers (or of model inputs, if negative) that this layer reads
  // for each input, the output that it reads: "" for a layer's first output, ":1" for its second
  std::vector<std::string> outputs;
  int last_reader = -1;  // index of the last layer that reads this layer
  // True if the layer cannot be part of a block. This is the case if it is an output of the model, if it
  // shares weights, if several of its outputs are read, or if it reads one of several outputs of a layer.
  bool is_fixed = false;
};

/// The body of a block, which consists of the layers [first, first + size).
struct BlockBody {
  size_t first = 0, size = 0;
};

/// A run of `copies` consecutive copies of a body with `size` layers. If a block with this body already
/// exists, `block` is its index.
struct BlockRun {
  size_t size = 0, copies = 0;
  std::optional<size_t> block;
};

/// The layers of a flat model. Finds runs of equal groups of layers that can be replaced by blocks.
class RepeatedLayers {
 public:
  /// Each layer of `model` must have an explicit name.
  explicit RepeatedLayers(const ConfigNode& model);

  const std::vector<FlatLayer>& all() const { return layers_; }
  const FlatLayer& at(size_t number) const { return layers_[number]; }

  /// Returns the index of the layer that is the only input of the body. Returns nullopt if the body reads
  /// several layers, or if a layer after the body reads a layer of the body other than its last one.
  std::optional<int> input_of(const BlockBody& body) const;

  /// Returns the run that starts at layer `first` and saves the most layers. Returns a run with 0 copies if
  /// no run saves enough layers for a block. `known`: the bodies of the existing blocks.
  BlockRun longest_run(size_t first, const std::vector<BlockBody>& known) const;

 private:
  bool are_equal(const BlockBody& a, const BlockBody& b) const;
  size_t copies_of(const BlockBody& body, size_t first) const;

  std::vector<FlatLayer> layers_;
};

}  // namespace dtrain
