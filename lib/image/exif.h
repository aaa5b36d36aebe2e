// The one entry of EXIF data that decides what a picture looks like.
#pragma once

#include <cstdint>
#include <span>

namespace dtrain {

/// The orientation, 1 to 8, that TIFF-structured data (behind "Exif\0\0") say; 1 where they say none or are
/// damaged.
int exif_orientation(std::span<const uint8_t> tiff);

}  // namespace dtrain
