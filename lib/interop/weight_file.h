// Weights out of a file that a model may begin with: a checkpoint of dtrain; an .h5, .weights.h5 or .keras of
// Keras; safetensors.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace dtrain {

/// The weights in the file's order, under names "<layer>/<weight>", in float32. In a file of Keras the layer
/// is its group's name, and the weight the end of what Keras calls it ("kernel" of "dense_1_2/kernel:0"),
/// with the names before that where several in the group end alike, as those of a model within a model do. In
/// .weights.h5 and .keras files the names are those of names_of_vars() (keras/weight_names.h). In safetensors
/// the weight is what follows the last dot ("layer1.0.conv1" and "weight"), or the names are as dtrain writes
/// them already.
class WeightFile {
 public:
  /// Throws UserError, with the path, what was expected and what was found, for a file that is none of these.
  static WeightFile load(const std::string& path);

  /// A weight whose numbers are no floating point numbers (Keras keeps counts and seeds as integers) has no
  /// data.
  const std::vector<ArrayRef>& weights() const { return weights_; }
  /// The checkpoint that the file is; null for other files.
  const Checkpoint* checkpoint() const { return checkpoint_.get(); }
  /// Whether the weights are those of PyTorch's modules, in their names and their order of axes.
  bool is_of_torch() const { return is_of_torch_; }

 private:
  static WeightFile of_checkpoint(const std::string& path);
  static WeightFile of_keras(const std::string& path);
  static WeightFile of_safetensors(const std::string& path);

  std::shared_ptr<const Checkpoint> checkpoint_;        // owns the arrays, or
  std::deque<std::vector<float>> arrays_;               // these do, or
  std::vector<std::shared_ptr<const float[]>> shared_;  // these do
  std::vector<ArrayRef> weights_;
  bool is_of_torch_ = false;
};

}  // namespace dtrain
