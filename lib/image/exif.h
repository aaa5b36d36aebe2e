// The one entry of a picture's metadata (EXIF, XMP) that decides what the picture looks like.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace dtrain {

/// The orientation, 1 to 8, that TIFF-structured data (behind "Exif\0\0") say; 0 where they say none or are
/// damaged.
int exif_orientation(std::span<const uint8_t> tiff);

/// The orientation, 1 to 8, that an XMP packet says (tiff:Orientation, as an attribute or an element); 0
/// where it says none.
int xmp_orientation(std::string_view packet);

}  // namespace dtrain
