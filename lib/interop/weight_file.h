// Files that a model can load pretrained weights from: dtrain's checkpoints; Keras's .h5, .weights.h5 and
// .keras files; safetensors; ONNX.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "interop/exported_model.h"

namespace dtrain {

/// The convention for names and axis order of weights in a file: the convention of Keras's layers (which
/// dtrain uses), of PyTorch's modules, or of ONNX's operators.
enum class WeightLayout { keras, torch, onnx };

/// The weights of a file in the file's order, as float32, with names "<layer>/<weight>". The names are:
/// - Keras .h5: the layer is the group's name; the weight is the end of Keras's name ("kernel" of
///   "dense_1_2/kernel:0"), with preceding parts if names in the group would otherwise be equal, as in models
///   within models.
/// - Keras .weights.h5 and .keras: names_of_vars() (interop/keras/files/weight_names.h).
/// - safetensors: the weight is the part after the last dot ("layer1.0.conv1" and "weight"), or the file has
///   the names that dtrain writes.
/// - ONNX: the initializers of floating types, with their own names.
class WeightFile {
 public:
  /// Reads a file. If it has none of these formats, throws UserError with the path, the expected formats and
  /// the content found.
  static WeightFile load(const std::string& path);
  /// Returns the weights of a model as they would be in an exported file of this layout. The result may refer
  /// to the model's memory.
  static WeightFile of_model(const ExportedModel& model, WeightLayout layout);

  /// Returns the weights. Weights that are not floating point numbers have no data (Keras stores counts and
  /// seeds as integers).
  const std::vector<ArrayRef>& weights() const { return weights_; }
  /// Returns the checkpoint if the file is one, else null.
  const Checkpoint* checkpoint() const { return checkpoint_.get(); }
  WeightLayout layout() const { return layout_; }

 private:
  void add(std::string name, const Shape& shape, std::vector<float> values);
  static WeightFile of_checkpoint(const std::string& path);
  static WeightFile of_onnx(const std::string& path);
  static WeightFile of_keras(const std::string& path);
  static WeightFile of_safetensors(const std::string& path);

  // One of the three members below owns the arrays; the other two are empty.
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::deque<std::vector<float>> arrays_;
  std::vector<std::shared_ptr<const float[]>> shared_;
  std::vector<ArrayRef> weights_;
  WeightLayout layout_ = WeightLayout::keras;
};

}  // namespace dtrain
