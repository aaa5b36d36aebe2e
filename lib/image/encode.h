// Encodes pixels as an image file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dtrain {

/// Returns the pixels as a PNG file. `pixels` has the shape [height, width, channels], with one byte per
/// value. `channels` is 1 (grayscale), 3 (RGB) or 4 (RGB and alpha). Throws Error if there is not enough
/// memory.
std::string encode_png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels);

}  // namespace dtrain
