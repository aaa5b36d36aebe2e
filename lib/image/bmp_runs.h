// Decodes the run-length encoding of BMP files (BI_RLE8, BI_RLE4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// Returns the palette index of each pixel as [height, width] bytes, from the bottom row to the top row.
/// `bits` is the number of bits per pixel (8 or 4). Pixels that are skipped by a jump get the index 0. The
/// part of a run that exceeds its row is ignored. Throws UserError if the data end before the image is
/// complete or if they have more rows than the image.
std::vector<uint8_t> decode_bmp_runs(std::span<const uint8_t> data, uint32_t bits, int64_t width,
                                     int64_t height);

}  // namespace dtrain
