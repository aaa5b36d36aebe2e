// The run-length encoding of BMP files (BI_RLE8, BI_RLE4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// The indices of all pixels [height, width] into the palette, a byte each, from bottom to top. `bits`: of a
/// pixel, 8 or 4. Pixels that the data pass over have the index 0; what a run has beyond the end of its row
/// is left out. Throws UserError where the data end early or lead beyond the picture.
std::vector<uint8_t> decode_bmp_runs(std::span<const uint8_t> data, uint32_t bits, int64_t width,
                                     int64_t height);

}  // namespace dtrain
