#include "interop/keras/files/restored_layers.h"

#include "interop/keras/files/attention_model.h"
#include "interop/keras/files/positions.h"

namespace dtrain {

namespace {

constexpr KerasLayerPart kPositionParts[] = {{kKerasPositionWeights, "", "embedding"}};

}  // namespace

void restore_layer(KerasModelLayer& layer) {
  restore_positions(layer);
  if (layer.model) restore_attention(layer);
}

std::span<const KerasLayerPart> parts_of_restored(const KerasModelLayer& layer) {
  if (!layer.is_restored_model) return {};
  if (layer.class_name == kKerasModelOfAttention) return kKerasAttentionParts;
  return kPositionParts;
}

}  // namespace dtrain
