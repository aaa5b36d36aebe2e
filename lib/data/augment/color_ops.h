// Color operations on images with values from 0 to 255. The results are the same as those of Keras's layers.
// Each operation writes its result to `dst`. Operations that may run in place allow `dst` to be equal to
// `src`.
#pragma once

#include "data/augment/picture_stage.h"

namespace dtrain {

/// Changes the contrast of each channel: multiplies the difference between each value and the mean of the
/// channel by `factor`. The results are clipped to [least, most]. May run in place.
void change_contrast(const float* src, const PictureShape& shape, float factor, float least, float most,
                     float* dst);
/// Moves each pixel towards gray by the fraction `part`. Images that do not have exactly three channels are
/// copied unchanged. May run in place.
void degenerate_color(const float* src, const PictureShape& shape, float part, float* dst);
/// Smooths or sharpens the image: factor 0 gives the smoothed image, 0.5 the unchanged image, and 1 the
/// sharpened image. Factors between these values interpolate. Cannot run in place.
void sharpen(const float* src, const PictureShape& shape, float factor, float* dst);
/// Keeps the highest `bits` bits of each 8-bit value. May run in place.
void posterize(const float* src, const PictureShape& shape, int bits, float* dst);
/// Adds `addition` to each value, then inverts the values that have reached the threshold. May run in place.
void solarize(const float* src, const PictureShape& shape, float addition, float threshold, float* dst);
/// Stretches each channel's values to the full range. May run in place.
void stretch_contrast(const float* src, const PictureShape& shape, float* dst);
/// Equalizes each channel's histogram. May run in place.
void equalize(const float* src, const PictureShape& shape, float* dst);

}  // namespace dtrain
