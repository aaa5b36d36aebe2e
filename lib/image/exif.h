// Reads the orientation from an image's metadata (EXIF, XMP), the only entry that affects its appearance.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace dtrain {

/// Returns the orientation, 1 to 8, from TIFF-structured data (the bytes after "Exif\0\0"); 0 if there is
/// none or the data are damaged.
int exif_orientation(std::span<const uint8_t> tiff);

/// Returns the orientation, 1 to 8, from an XMP packet (tiff:Orientation as an attribute or an element); 0 if
/// there is none.
int xmp_orientation(std::string_view packet);

}  // namespace dtrain
