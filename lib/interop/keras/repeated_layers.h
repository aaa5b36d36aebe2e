// Finds runs of layers in an imported model that are equal and follow each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace dtrain {

/// One layer of the flat model. Layers are numbered in order; inputs of the model have negative numbers.
struct FlatLayer {
  std::string kind, name;
  ConfigNode options;       // without name and inputs
  std::string signature;    // kind and options as text
  std::vector<int> inputs;  // numbers of layers
  int last_reader = -1;     // number of the last layer that reads it
  bool is_fixed = false;  // must keep its place: an output of the model, or weights shared with another layer
};

/// Layers [first, first + size) as the body of a block.
struct BlockBody {
  size_t first = 0, size = 0;
};

/// A body and how often it follows itself; `body` is the number of an earlier block if it is that block's.
struct BlockRun {
  size_t size = 0, copies = 0;
  std::optional<size_t> block;
};

/// The layers of a flat model, and the runs among them that a block can replace.
class RepeatedLayers {
 public:
  /// Each layer of `model` must have its name written.
  explicit RepeatedLayers(const ConfigNode& model);

  const std::vector<FlatLayer>& all() const { return layers_; }
  const FlatLayer& at(size_t number) const { return layers_[number]; }

  /// Returns the number of the one layer before the body that the body reads; nothing if it reads several, or
  /// if a layer after the body reads another than the body's last layer.
  std::optional<int> input_of(const BlockBody& body) const;

  /// Returns the run that saves most layers if it begins at `first`; one without copies if no run is worth a
  /// block. `known`: the bodies of the blocks that exist.
  BlockRun longest_run(size_t first, const std::vector<BlockBody>& known) const;

 private:
  bool are_equal(const BlockBody& a, const BlockBody& b) const;
  size_t copies_of(const BlockBody& body, size_t first) const;

  std::vector<FlatLayer> layers_;
};

}  // namespace dtrain
