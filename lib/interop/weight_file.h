// Weights out of a file that a model may begin with: a checkpoint of dtrain; an .h5, .weights.h5 or .keras of
// Keras; safetensors.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "interop/exported_model.h"

namespace dtrain {

/// The names and the order of axes that weights have in a file: Keras's, as dtrain has them; those of
/// PyTorch's modules; those of ONNX's operators.
enum class WeightLayout { keras, torch, onnx };

/// The weights in the file's order, under names "<layer>/<weight>", in float32. In a file of Keras the layer
/// is its group's name, and the weight the end of what Keras calls it ("kernel" of "dense_1_2/kernel:0"),
/// with the names before that where several in the group end alike, as those of a model within a model do. In
/// .weights.h5 and .keras files the names are those of names_of_vars() (keras/weight_names.h). In safetensors
/// the weight is what follows the last dot ("layer1.0.conv1" and "weight"), or the names are as dtrain writes
/// them already. The weights of an ONNX file are its initializers of floating types, under their names.
class WeightFile {
 public:
  /// Throws UserError, with the path, what was expected and what was found, for a file that is none of these.
  static WeightFile load(const std::string& path);
  /// The weights of a model as a file of this layout has them that dtrain exports. They may refer to the
  /// model's.
  static WeightFile of_model(const ExportedModel& model, WeightLayout layout);

  /// A weight whose numbers are no floating point numbers (Keras keeps counts and seeds as integers) has no
  /// data.
  const std::vector<ArrayRef>& weights() const { return weights_; }
  /// The checkpoint that the file is; null for other files.
  const Checkpoint* checkpoint() const { return checkpoint_.get(); }
  WeightLayout layout() const { return layout_; }

 private:
  void add(std::string name, const Shape& shape, std::vector<float> values);
  static WeightFile of_checkpoint(const std::string& path);
  static WeightFile of_onnx(const std::string& path);
  static WeightFile of_keras(const std::string& path);
  static WeightFile of_safetensors(const std::string& path);

  std::shared_ptr<const Checkpoint> checkpoint_;        // owns the arrays, or
  std::deque<std::vector<float>> arrays_;               // these do, or
  std::vector<std::shared_ptr<const float[]>> shared_;  // these do
  std::vector<ArrayRef> weights_;
  WeightLayout layout_ = WeightLayout::keras;
};

}  // namespace dtrain
