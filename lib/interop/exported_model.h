// The input of all exporters: a trained model's graph, its weights, and the scaling of inputs and outputs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "nn/graph.h"

namespace dtrain {

/// The position of a value's channel axis: last, as in dtrain's layers, or right after the batch axis, as
/// ONNX's and PyTorch's image operators expect. For samples of fewer than two axes both are the same.
enum class ExportLayout { channels_last, channels_first };

/// y = scale * x + offset. Both vectors have one element, or one for each element of a sample; empty: y = x.
struct ExportedScale {
  std::vector<double> scale, offset;
  bool empty() const { return scale.empty(); }
};

/// An input of the exported file. The model's input is (given - center) * scale, reshaped to the model's
/// shape. Both vectors have one element, or one for each element of a sample; empty: the model's input is
/// `given`.
struct ExportedInput {
  TensorSpec given;  ///< the file's input: name, shape of one sample, dtype
  std::vector<double> center, scale;
};

/// An output of the exported file: the model's output, then `finish`, then `scale` are applied.
struct ExportedOutput {
  enum class Finish { none, sigmoid, softmax };
  std::string name;
  Finish finish = Finish::none;
  ExportedScale scale;
};

/// Samples with the outputs that dtrain computes for them. An exporter checks a file with them before it
/// creates the file. Integers are below 2^24, so that float32 represents them exactly.
struct ExportedProbes {
  int64_t samples = 0;
  std::vector<std::vector<float>> inputs;   ///< inputs of the file, indexed by input
  std::vector<std::vector<float>> outputs;  ///< expected outputs of the file, indexed by output
};

/// Returns the numbers as float32, the type that files store.
inline std::vector<float> narrowed(const std::vector<double>& values) {
  std::vector<float> floats;
  for (const double value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

/// Returns the shape of an array of `numbers`: {1}, or the sample's shape if there is one number per element.
inline Shape shape_of_numbers(const std::vector<double>& numbers, const Shape& sample) {
  return numbers.size() == 1 ? Shape{1} : sample;
}

/// A layer that is an option of another layer, in the form of a node, so that the conversions of its kind can
/// read it.
struct InnerNode {
  GraphNode node;    ///< a copy of the outer layer's node with the inner layer's kind, layer and output
  Json options;      ///< with all defaults filled in
  TensorSpec input;  ///< the only input of the inner layer
};

struct ExportedModel {
  const Graph* graph = nullptr;
  std::string name;
  /// Returns the values of a node's parameter in Keras's layout; the node must own its parameters
  /// (Graph::owner).
  std::function<std::span<const float>(int node, size_t parameter)> values;
  std::vector<ExportedInput> inputs;    ///< in the order of Graph::inputs
  std::vector<ExportedOutput> outputs;  ///< in the order of Graph::outputs
  ExportedProbes probes;
  Json metadata = Json::object();  ///< additional information for readers of the file, such as class names
};

}  // namespace dtrain
