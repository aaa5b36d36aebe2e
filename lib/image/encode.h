// Encodes pixels as an image file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dtrain {

/// Returns a PNG file of the pixels, [height, width, channels] bytes; `channels` is 1 (grayscale), 3 (RGB) or
/// 4 (RGB and alpha). Throws Error if out of memory.
std::string encode_png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels);

}  // namespace dtrain
