// The arrays in a file of Keras's, with their values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/shape.h"

namespace dtrain {

class MappedFile;
class OpenKerasFile;

struct KerasWeight {
  std::string name;  ///< as the file has it: "dense/kernel:0", or "0", "1", ... in the layout `vars`
  Shape shape;
  /// shape.elements() numbers; null for numbers that are not floating point numbers. They may share the
  /// memory of the whole file.
  std::shared_ptr<const float[]> values;
  std::optional<int64_t> integer;  ///< the number of an array of one integer
};

/// The weights of one layer.
struct KerasWeightGroup {
  std::string name;   ///< the layer's name; in the layout `vars` the path of its group: "layers/dense_1"
  std::string layer;  ///< in the layout `vars` the layer's name; "" in files of early versions of Keras 3
  std::vector<KerasWeight> weights;  ///< in the file's order
};

struct KerasWeights {
  std::vector<KerasWeightGroup> groups;
  std::vector<KerasWeight> optimizer;
};

/// Returns the array where axis i is axis `axes[i]` of `weight`, which has values.
KerasWeight with_axes(const KerasWeight& weight, const std::vector<int64_t>& axes);

/// Returns an array for images of [height, width, channels], from one for [channels, height, width].
KerasWeight with_channels_last(const KerasWeight& weight);

/// Reads all arrays. Those that lie in an .h5 file as they are wanted stay where it is `mapped`, if it is
/// given; whoever reads them calls MappedFile::check() afterwards. Throws UserError, with the path, what was
/// expected and what was found, for damaged files and for those that would take more memory than their data
/// warrant.
KerasWeights read_keras_weights(const OpenKerasFile& file,
                                const std::shared_ptr<const MappedFile>& mapped = nullptr);

}  // namespace dtrain
