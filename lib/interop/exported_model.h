// The input of all exporters: a trained model's graph, its weights, and the scaling of inputs and outputs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "nn/graph.h"

namespace dtrain {

/// Position of the channel axis of a value. dtrain's layers have the channels on the last axis. ONNX's and
/// PyTorch's image operators expect the channel axis right after the batch axis. For samples with fewer than
/// two axes, both layouts are the same.
enum class ExportLayout { channels_last, channels_first };

/// The linear transform y = scale * x + offset. Both vectors have either one element or one element for each
/// element of a sample. If both are empty, y = x.
struct ExportedScale {
  std::vector<double> scale, offset;
  bool empty() const { return scale.empty(); }
};

/// An input of the exported file. The exported file computes the model's input from it as (value - center) *
/// scale, reshaped to the shape of the model's input. `center` and `scale` have either one element or one
/// element for each element of a sample. If both are empty, the value is only reshaped.
struct ExportedInput {
  TensorSpec given;  ///< name, shape of one sample and dtype of the file's input
  std::vector<double> center, scale;
};

/// An output of the exported file. The exported file first applies `finish` to the model's output, and then
/// `scale`.
struct ExportedOutput {
  enum class Finish { none, sigmoid, softmax };
  std::string name;
  Finish finish = Finish::none;
  ExportedScale scale;
};

/// Sample inputs, and the outputs that dtrain computes for them. They serve to check that an exported file
/// computes the same outputs. Integers in the inputs are below 2^24, so that float32 represents them exactly.
struct ExportedProbes {
  int64_t samples = 0;
  std::vector<std::vector<float>> inputs;   ///< inputs of the file, indexed by input
  std::vector<std::vector<float>> outputs;  ///< expected outputs of the file, indexed by output
};

/// Returns the numbers as float32, the type of all numbers in exported files.
inline std::vector<float> narrowed(const std::vector<double>& values) {
  std::vector<float> floats;
  for (const double value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

/// Returns the shape of an array that contains `numbers`: {1} for a single number, or `sample` if there is
/// one number for each element of a sample.
inline Shape shape_of_numbers(const std::vector<double>& numbers, const Shape& sample) {
  return numbers.size() == 1 ? Shape{1} : sample;
}

/// A layer that is given as an option of another layer, for example the layer in a `time_distributed`. It is
/// represented as a node, so that the conversions for its kind can be applied to it.
struct InnerNode {
  GraphNode node;    ///< a copy of the outer layer's node with the inner layer's kind, layer and output
  Json options;      ///< options of the inner layer, with all defaults filled in
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
