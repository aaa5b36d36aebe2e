// Color operations on images with values from 0 to 255, with the same results as Keras's layers. Each writes
// to `dst`, which may be `src` only if the comment says "in place".
#pragma once

#include "data/augment/picture_stage.h"

namespace dtrain {

/// Multiplies each value's distance from its channel's mean by `factor` and clips to [least, most]. May run
/// in place.
void change_contrast(const float* src, const PictureShape& shape, float factor, float least, float most,
                     float* dst);
/// Moves each pixel towards gray by the fraction `part`. Copies images without exactly three channels
/// unchanged. May run in place.
void degenerate_colour(const float* src, const PictureShape& shape, float part, float* dst);
/// Blends with the smoothed image: smoothed (factor 0), unchanged (0.5), or sharpened (1). Cannot run in
/// place.
void sharpen(const float* src, const PictureShape& shape, float factor, float* dst);
/// Keeps the highest `bits` bits of each 8-bit value. May run in place.
void posterize(const float* src, const PictureShape& shape, int bits, float* dst);
/// Adds `addition`, then inverts values that are not below the threshold. May run in place.
void solarize(const float* src, const PictureShape& shape, float addition, float threshold, float* dst);
/// Stretches each channel's values to the full range. May run in place.
void stretch_contrast(const float* src, const PictureShape& shape, float* dst);
/// Equalizes each channel's histogram. May run in place.
void equalize(const float* src, const PictureShape& shape, float* dst);

}  // namespace dtrain
