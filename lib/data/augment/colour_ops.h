// Changes of pictures' values, from 0 to 255, as Keras's layers of these names make them. Each writes to
// `dst`, which may be `src` where it says so.
#pragma once

#include "data/augment/picture_stage.h"

namespace dtrain {

/// Each channel's distances from its mean times `factor`, within [least, most]. In place, too.
void change_contrast(const float* src, const PictureShape& shape, float factor, float least, float most,
                     float* dst);
/// A `part` of the way to grey. Pictures of other than three channels stay. In place, too.
void degenerate_colour(const float* src, const PictureShape& shape, float part, float* dst);
/// Nearer to the smoothed picture (factor 0), as it is (0.5), or farther from it (1). Not in place.
void sharpen(const float* src, const PictureShape& shape, float factor, float* dst);
/// Keeps the highest `bits` of eight. In place, too.
void posterize(const float* src, const PictureShape& shape, int bits, float* dst);
/// Adds, then inverts what is not below the threshold. In place, too.
void solarize(const float* src, const PictureShape& shape, float addition, float threshold, float* dst);
/// Stretches each channel's range to the whole one. In place, too.
void stretch_contrast(const float* src, const PictureShape& shape, float* dst);
/// Makes each channel's values about equally frequent. In place, too.
void equalize(const float* src, const PictureShape& shape, float* dst);

}  // namespace dtrain
