// Weights out of a file that a model may begin with: a checkpoint of dtrain, or HDF5 as Keras writes it.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace dtrain {

/// The weights in the file's order, under names "<layer>/<weight>", in float32. In a file of Keras the layer
/// is its group's name, and the weight the end of what Keras calls it ("kernel" of "dense_1_2/kernel:0"),
/// with the names before that where several in the group end alike, as those of a model within a model do.
class WeightFile {
 public:
  /// Throws UserError, with the path, what was expected and what was found, for a file that is neither.
  static WeightFile load(const std::string& path);

  /// A weight whose numbers are no floating point numbers (Keras keeps counts and seeds as integers) has no
  /// data.
  const std::vector<ArrayRef>& weights() const { return weights_; }
  /// The checkpoint that the file is; null for a file of Keras.
  const Checkpoint* checkpoint() const { return checkpoint_.get(); }

 private:
  static WeightFile of_checkpoint(const std::string& path);
  static WeightFile of_keras(const std::string& path);

  std::shared_ptr<const Checkpoint> checkpoint_;  // owns the arrays, or
  std::deque<std::vector<float>> arrays_;         // these are they
  std::vector<ArrayRef> weights_;
};

}  // namespace dtrain
