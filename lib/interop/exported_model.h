// A trained model as the exporters of files take it: the graph, its numbers, and the meaning of its outputs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "nn/graph.h"

namespace dtrain {

/// Where the channels of a value are: last, as dtrain's layers have them, or behind the batch axis, as ONNX's
/// and PyTorch's operators of images want them. Samples of fewer than two axes have both.
enum class ExportLayout { channels_last, channels_first };

/// y = scale * x + offset, both of one element or of one for each element of a sample; empty: y is x.
struct ExportedScale {
  std::vector<double> scale, offset;
  bool empty() const { return scale.empty(); }
};

/// An input as the file takes it: the model's input is (given - center) * scale in its own shape. Both are of
/// one element or of one for each element of a sample; empty: the model's input is what is given.
struct ExportedInput {
  TensorSpec given;  ///< of one sample; the name is the input's
  std::vector<double> center, scale;
};

/// An output as the file gives it: the model's numbers, then `finish`, then `scale`.
struct ExportedOutput {
  enum class Finish { none, sigmoid, softmax };
  std::string name;
  Finish finish = Finish::none;
  ExportedScale scale;
};

/// Samples with the model's own answers, against which an exporter checks a file before it appears. Integers
/// are below 2^24, so that float32 holds them.
struct ExportedProbes {
  int64_t samples = 0;
  std::vector<std::vector<float>> inputs;   ///< by input, as the file takes them
  std::vector<std::vector<float>> outputs;  ///< by output, as the file gives them
};

/// Numbers as files have them.
inline std::vector<float> narrowed(const std::vector<double>& values) {
  std::vector<float> floats;
  for (const double value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

/// The shape of an array with a number for each element of a sample, or with one for all of them.
inline Shape shape_of_numbers(const std::vector<double>& numbers, const Shape& sample) {
  return numbers.size() == 1 ? Shape{1} : sample;
}

struct ExportedModel {
  const Graph* graph = nullptr;
  std::string name;
  /// The numbers of a node's parameter, in Keras's array layout; the node is an owner (Graph::owner).
  std::function<std::span<const float>(int node, size_t parameter)> values;
  std::vector<ExportedInput> inputs;    ///< in the order of Graph::inputs
  std::vector<ExportedOutput> outputs;  ///< in the order of Graph::outputs
  ExportedProbes probes;
  Json metadata = Json::object();  ///< names of classes and the like, for whoever reads the file
};

}  // namespace dtrain
