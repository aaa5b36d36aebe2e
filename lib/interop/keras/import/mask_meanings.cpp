#include "interop/keras/import/mask_meanings.h"

#include <string>

#include "interop/keras/files/json.h"

namespace dtrain {

namespace {

bool is_along_last(const KerasLayerCall& call) {
  const Json* const axis = value_at(call.layer->config, "axis");
  return axis && axis->is_int() && axis->as_int() == -1;
}

MaskMeaning with_features(MaskMeaning mask, bool has_features) {
  mask.has_features = has_features && mask.kind != MaskMeaning::Kind::unknown;
  return mask;
}

/// Returns the meaning of the logical OR of two masks.
MaskMeaning either(const MaskMeaning& a, const MaskMeaning& b) {
  if (a == b || b.kind == MaskMeaning::Kind::none) return a;
  if (a.kind == MaskMeaning::Kind::none) return b;
  return a.kind == MaskMeaning::Kind::all || b.kind == MaskMeaning::Kind::all
             ? MaskMeaning{MaskMeaning::Kind::all}
             : MaskMeaning();
}

/// Returns the meaning of the mask after Keras applied any() to it along the feature axis.
MaskMeaning of_any_feature(MaskMeaning mask) {
  if (mask.has_features || mask.kind == MaskMeaning::Kind::all) return with_features(mask, false);
  if (mask.kind != MaskMeaning::Kind::unequal) return {};
  mask.kind = MaskMeaning::Kind::any_unequal;
  return mask;
}

}  // namespace

MaskMeanings::MaskMeanings(const KerasCalls& calls) : calls_(calls) {
  for (const KerasLayerCall& call : calls.calls) found_.push_back(meaning_of(call));
}

MaskMeaning MaskMeanings::of_creator(const KerasLayerCall& creator) {
  const Json* const padding = value_at(creator.layer->config, "mask_value");
  if (creator.inputs.empty() || (padding && !padding->is_number())) return {};
  const bool is_masking = creator.layer->class_name == "Masking";
  return {is_masking ? MaskMeaning::Kind::any_unequal : MaskMeaning::Kind::unequal, creator.inputs[0],
          is_masking && padding ? padding->as_double() : 0};
}

/// If the value is the output of a cast to another dtype, returns the input of the cast. Otherwise, returns
/// the value itself.
KerasValue MaskMeanings::before_cast(const KerasValue& value) const {
  if (value.call < 0) return value;
  const KerasLayerCall& call = calls_.calls[static_cast<size_t>(value.call)];
  return call.layer->class_name == "Cast" && call.inputs.size() == 1 ? call.inputs[0] : value;
}

MaskMeaning MaskMeanings::meaning_of(const KerasLayerCall& call) const {
  const std::string& name = call.layer->class_name;
  if (call.inputs.empty()) return {};
  const MaskMeaning first = of(call.inputs[0]);
  const bool is_keras_2 = name == "TFOpLambda" && text_at(call.layer->config, "function") == "math.not_equal";
  if ((name == "NotEqual" || is_keras_2) && call.inputs.size() == 1 && call.constant)
    return {MaskMeaning::Kind::unequal, before_cast(call.inputs[0]), *call.constant};
  if (name == "OnesLike") return {MaskMeaning::Kind::all};
  if (name == "ZerosLike") return {MaskMeaning::Kind::none};
  if (name == "LogicalOr" && call.inputs.size() == 2) return either(first, of(call.inputs[1]));
  if (name == "ExpandDims" && is_along_last(call) && !first.has_features) return with_features(first, true);
  if (name == "Concatenate" && is_along_last(call)) return concatenated(call);
  if (name == "Any" && is_along_last(call) && !is_true_at(call.layer->config, "keepdims"))
    return of_any_feature(first);
  return {};
}

/// Returns the meaning of masks that are concatenated along the feature axis. Keras applies any() to the
/// concatenated mask, so the result is the logical OR of the masks.
MaskMeaning MaskMeanings::concatenated(const KerasLayerCall& call) const {
  MaskMeaning result{MaskMeaning::Kind::none};
  for (const KerasValue& input : call.inputs) {
    const MaskMeaning mask = of(input);
    if (mask.kind != MaskMeaning::Kind::all && !mask.has_features) return {};
    result = either(result, mask);
  }
  return result;
}

}  // namespace dtrain
