// The meaning of masks that operations in a Keras file compute.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/keras/import/model_calls.h"

namespace dtrain {

/// The positions that a mask marks as valid.
struct MaskMeaning {
  enum class Kind : uint8_t {
    unknown,
    all,          // every position is valid
    none,         // no position is valid; Keras combines another mask with such a mask to change its shape
    unequal,      // positions whose index is not the padding are valid
    any_unequal,  // positions with a feature that is not the padding are valid
  };
  Kind kind = Kind::unknown;
  KerasValue of = {};  // the value that is compared with the padding
  double padding = 0;
  bool has_features = false;  // true if the last axis is the features, false if it is the positions

  bool operator==(const MaskMeaning&) const = default;
};

/// Finds which positions each call's output marks as valid if the output is used as a mask. Keras 3 files
/// contain the operations that compute masks as calls, whose outputs are arguments of other calls.
class MaskMeanings {
 public:
  /// Keeps a reference to the calls.
  explicit MaskMeanings(const KerasCalls& calls);

  MaskMeaning of(const KerasValue& value) const {
    return value.call < 0 ? MaskMeaning() : found_[static_cast<size_t>(value.call)];
  }
  /// Returns the meaning of the mask that a layer creates (Embedding with mask_zero, or Masking).
  static MaskMeaning of_creator(const KerasLayerCall& creator);

 private:
  MaskMeaning meaning_of(const KerasLayerCall& call) const;
  KerasValue before_cast(const KerasValue& value) const;
  MaskMeaning concatenated(const KerasLayerCall& call) const;

  const KerasCalls& calls_;
  std::vector<MaskMeaning> found_;  // indexed by call
};

}  // namespace dtrain
