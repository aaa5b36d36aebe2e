// Reads the orientation from the metadata of an image (EXIF or XMP). Other metadata are not read because they
// do not affect the pixels.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace dtrain {

/// Returns the orientation (1 to 8) from EXIF data. `tiff` contains the bytes after "Exif\0\0", which have
/// the structure of a TIFF file. Returns 0 if the data contain no orientation or are damaged.
int exif_orientation(std::span<const uint8_t> tiff);

/// Returns the orientation (1 to 8) from an XMP packet, in which tiff:Orientation is an attribute or an
/// element. Returns 0 if the packet contains no orientation.
int xmp_orientation(std::string_view packet);

}  // namespace dtrain
