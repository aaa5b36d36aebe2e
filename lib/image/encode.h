// From pixels to a picture's file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dtrain {

/// The PNG of [height, width, channels] bytes; `channels` is 1 (grey), 3 (RGB) or 4 (RGB and alpha). Throws
/// Error where there is no memory for it.
std::string encode_png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels);

}  // namespace dtrain
