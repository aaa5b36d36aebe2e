// Files that a model can load pretrained weights from: dtrain's checkpoints; Keras's .h5, .weights.h5 and
// .keras files; safetensors; ONNX.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "interop/exported_model.h"

namespace dtrain {

/// The convention for names and axis order of weights in a file: the convention of Keras's layers (which
/// dtrain uses), of PyTorch's modules, or of ONNX's operators.
enum class WeightLayout { keras, torch, onnx };

/// The weights of a file in the file's order, as float32, with names "<layer>/<weight>". The names depend on
/// the format of the file:
/// - Keras .h5: the layer is the name of the group, and the weight is the last part of its name in Keras
///   ("kernel" of "dense_1_2/kernel:0"). If two names in the group would be equal, as in models within
///   models, the parts before the last part are kept, too.
/// - Keras .weights.h5 and .keras: see names_of_vars() (interop/keras/files/weight_names.h).
/// - safetensors: the weight is the part after the last dot: "layer1.0.conv1" and "weight". In files that
///   dtrain wrote, the names are those that dtrain uses.
/// - ONNX: the initializers, with their own names.
class WeightFile {
 public:
  /// Reads a file. Throws UserError with the path, the supported formats and the content found if the file
  /// has none of these formats.
  static WeightFile load(const std::string& path);
  /// Returns the weights of a model as they would be stored in an exported file with this layout. The result
  /// may refer to the model's memory.
  static WeightFile of_model(const ExportedModel& model, WeightLayout layout);

  /// Returns the weights. Only float16, bfloat16, float32 and float64 weights have data. For example, float8
  /// weights have none, and neither do the counts and seeds that Keras stores as integers.
  const std::vector<ArrayRef>& weights() const { return weights_; }
  /// Returns the type and the raw bytes of a weight that is not float16, bfloat16, float32 or float64;
  /// weights() has no data for such a weight. Returns "" for Keras files, because their integers are not
  /// read.
  std::string_view other_values(const std::string& name) const;
  /// Returns the checkpoint if the file is a checkpoint, else null.
  const Checkpoint* checkpoint() const { return checkpoint_.get(); }
  WeightLayout layout() const { return layout_; }

 private:
  void add(std::string name, const Shape& shape, std::vector<float> values);
  void add_other(const std::string& name, const Shape& shape, std::string values);
  static WeightFile of_checkpoint(const std::string& path);
  static WeightFile of_onnx(const std::string& path);
  static WeightFile of_keras(const std::string& path);
  static WeightFile of_safetensors(const std::string& path);

  // At most one of these three members owns the arrays. All three are empty if the arrays belong to a model.
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::deque<std::vector<float>> arrays_;
  std::vector<std::shared_ptr<const float[]>> shared_;
  std::vector<ArrayRef> weights_;
  // The result of other_values() for each weight that is not converted to float32, such as float8.
  std::map<std::string, std::string> others_;
  WeightLayout layout_ = WeightLayout::keras;
};

}  // namespace dtrain
