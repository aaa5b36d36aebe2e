// Keras's forms of dtrain's layers that add positions. Keras has no such layers, but its other layers can
// compute the same.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// The path of a position_embedding's weights within the group of its model in .keras files.
inline constexpr std::string_view kKerasPositionWeights = "layers/embedding";
/// The class of a restored sinusoidal_position_encoding. Keras has no class of this name.
inline constexpr const char* kKerasSinusoids = "AddSinePositionEncoding";

/// Returns the encoding of all positions, [positions][columns], rounded to nine decimal places.
Json keras_sinusoids(int64_t positions, int64_t columns, double max_wavelength);

/// Replaces Keras's form of a position_embedding (a model) or of a sinusoidal_position_encoding (a Rescaling)
/// by one layer with dtrain's options. Other layers are unchanged.
void restore_positions(KerasModelLayer& layer);

}  // namespace dtrain
