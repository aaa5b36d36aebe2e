// Decodes the run-length encoding of BMP files (BI_RLE8, BI_RLE4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// Returns the palette index of each pixel, [height, width] bytes from bottom to top. `bits` is the number of
/// bits per pixel, 8 or 4. Skipped pixels have index 0; runs are cut at the end of their row. Throws
/// UserError if the data end early or extend beyond the image.
std::vector<uint8_t> decode_bmp_runs(std::span<const uint8_t> data, uint32_t bits, int64_t width,
                                     int64_t height);

}  // namespace dtrain
