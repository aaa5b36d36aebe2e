// Finds consecutive equal groups of layers in an imported model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace dtrain {

/// One layer of the flat model. Layers are numbered in order; inputs of the model have negative numbers.
struct FlatLayer {
  std::string kind, name;
  ConfigNode options;                // options without name and inputs
  std::string signature;             // kind and options as text
  std::vector<int> inputs;           // numbers of layers
  std::vector<std::string> outputs;  // which output each input reads: "" for the first, ":1" for the second
  int last_reader = -1;              // number of the last layer that reads this layer
  // Whether the layer cannot be in a block, because it is an output of the model, shares weights, has several
  // outputs that are read, or reads one of several outputs.
  bool is_fixed = false;
};

/// Layers [first, first + size) as the body of a block.
struct BlockBody {
  size_t first = 0, size = 0;
};

/// A run of `copies` consecutive copies of a body of `size` layers. `block` is the index of the existing
/// block with this body, if there is one.
struct BlockRun {
  size_t size = 0, copies = 0;
  std::optional<size_t> block;
};

/// The layers of a flat model, and the runs among them that a block can replace.
class RepeatedLayers {
 public:
  /// Each layer of `model` must have an explicit name.
  explicit RepeatedLayers(const ConfigNode& model);

  const std::vector<FlatLayer>& all() const { return layers_; }
  const FlatLayer& at(size_t number) const { return layers_[number]; }

  /// Returns the number of the only layer before the body that the body reads. Returns nullopt if it reads
  /// several, or if a layer after the body reads a layer of the body other than its last.
  std::optional<int> input_of(const BlockBody& body) const;

  /// Returns the run starting at `first` that saves the most layers; a run without copies if no run is worth
  /// a block. `known` holds the bodies of the existing blocks.
  BlockRun longest_run(size_t first, const std::vector<BlockBody>& known) const;

 private:
  bool are_equal(const BlockBody& a, const BlockBody& b) const;
  size_t copies_of(const BlockBody& body, size_t first) const;

  std::vector<FlatLayer> layers_;
};

}  // namespace dtrain
