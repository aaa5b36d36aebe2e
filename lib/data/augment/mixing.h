// Augmentations that blend a sample with another one of the split, targets included.
#pragma once

#include "data/augment/picture_stage.h"

namespace dtrain {

/// What a sample draws decides how it is blended with its partner. Immutable.
class Mixing {
 public:
  /// How much of the sample is left: by a rectangle of the partner's pixels, or evenly.
  struct Blend {
    float weight = 1;  // of the sample; the partner's is 1 - weight. Of the targets, and of pixels outside of
                       // a rectangle, which are all the sample's
    bool is_rectangle = false;
    int64_t top = 0, bottom = 0, left = 0, right = 0;  // rows [top, bottom), columns [left, right)
  };

  virtual ~Mixing() = default;
  virtual Blend draw(const PictureShape& shape, Draws& draws) const = 0;
};

/// Blends a picture of this shape with its partner's, in place.
void blend_pictures(const Mixing::Blend& blend, const PictureShape& shape, const float* partner,
                    float* picture);
/// Blends targets, class probabilities or other numbers, in place; a rectangle counts by its share.
void blend_targets(const Mixing::Blend& blend, const float* partner, int64_t count, float* target);

/// A number from the beta distribution of (a, a).
double draw_beta(double a, Draws& draws);

}  // namespace dtrain
