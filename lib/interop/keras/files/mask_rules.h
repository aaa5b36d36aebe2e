// The rules by which Keras's layers treat the masks of their inputs.
#pragma once

#include <string>

namespace dtrain {

enum class KerasMaskRule {
  lost,    ///< treats padding as data; the output has no mask. Keras prints a warning in this case
  passed,  ///< the output has the mask of the input
  merged,  ///< the output has a mask if all inputs have one
  read,    ///< takes padding into account; whether the output has the mask depends on the layer
};

/// Returns the rule of a Keras class. Must not be called for a class whose layers create masks.
KerasMaskRule keras_mask_rule(const std::string& class_name);

}  // namespace dtrain
