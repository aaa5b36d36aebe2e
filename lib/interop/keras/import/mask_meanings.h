// Interprets the masks that are computed by operations in a Keras file.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/keras/import/model_calls.h"

namespace dtrain {

/// The positions that a mask marks as valid.
struct MaskMeaning {
  enum class Kind : uint8_t {
    unknown,
    all,  // every position is valid
    // no position is valid; Keras uses this mask to broadcast another mask, by the logical OR of both masks
    none,
    unequal,      // a position is valid if its index differs from the padding value
    any_unequal,  // a position is valid if at least one of its features differs from the padding value
  };
  Kind kind = Kind::unknown;
  KerasValue of = {};  // the value that is compared with the padding value
  double padding = 0;
  // true if the last axis is the feature axis, false if it is the position axis
  bool has_features = false;

  bool operator==(const MaskMeaning&) const = default;
};

/// Finds which positions are valid if the output of a call is used as a mask. Keras 3 files contain the
/// operations that compute masks as calls. The outputs of these calls are arguments of other calls.
class MaskMeanings {
 public:
  /// `calls` must outlive this object.
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
