// Conversion of dtrain's layers that add positions. Keras has no such layers, so they are exported as
// combinations of other Keras layers and restored from them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// Path of the weights of a position_embedding in .keras files, relative to the group of the model that
/// stands for the layer.
inline constexpr std::string_view kKerasPositionWeights = "layers/embedding";
/// Class name of a restored sinusoidal_position_encoding. Keras has no class of this name.
inline constexpr const char* kKerasSinusoids = "AddSinePositionEncoding";

/// Returns the sinusoidal encoding as a table [positions][columns] of numbers rounded to nine decimal places.
Json keras_sinusoids(int64_t positions, int64_t columns, double max_wavelength);

/// If `layer` is the Keras model that stands for a position_embedding, or the Rescaling that stands for a
/// sinusoidal_position_encoding, replaces it by the dtrain layer with its options. Other layers do not
/// change.
void restore_positions(KerasModelLayer& layer);

}  // namespace dtrain
