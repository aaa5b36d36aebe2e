// Reads the arrays of a Keras file with their values.
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
  std::string name;  ///< as in the file: "dense/kernel:0", or "0", "1", ... in the layout `vars`
  Shape shape;
  /// Contains shape.elements() values; null if the array does not contain floating-point numbers. The pointer
  /// may keep the memory of the whole file alive.
  std::shared_ptr<const float[]> values;
  std::optional<int64_t> integer;  ///< value of an array that consists of a single integer
};

/// The weights of one layer.
struct KerasWeightGroup {
  std::string name;   ///< the layer's name; in the layout `vars`, the path of its group: "layers/dense_1"
  std::string layer;  ///< in the layout `vars`, the layer's name; "" in files of early versions of Keras 3
  std::vector<KerasWeight> weights;  ///< in the file's order
  /// In the layout `vars`, if the group contains the weights of the inner layer of a TimeDistributed: the
  /// name of the inner layer. Otherwise "".
  std::string wrapped = {};
};

struct KerasWeights {
  std::vector<KerasWeightGroup> groups;
  std::vector<KerasWeight> optimizer;
};

/// Returns the transposed array: axis i of the result is axis `axes[i]` of `weight`. The values of `weight`
/// must not be null.
KerasWeight with_axes(const KerasWeight& weight, const std::vector<int64_t>& axes);

/// Converts an array from [channels, height, width] to [height, width, channels].
KerasWeight with_channels_last(const KerasWeight& weight);

/// Reads all arrays. If `mapped` is given, the aligned float32 arrays of an .h5 file are not copied but refer
/// to the mapped memory. The caller must then call MappedFile::check() after reading the values. Throws
/// UserError with the path, the expected content and the content found if the file is damaged, or if it
/// claims to contain arrays that are much larger than its data.
KerasWeights read_keras_weights(const OpenKerasFile& file,
                                const std::shared_ptr<const MappedFile>& mapped = nullptr);

/// Like read_keras_weights(), but reads only the names and shapes of the arrays, not their values.
KerasWeights read_keras_shapes(const OpenKerasFile& file);

}  // namespace dtrain
