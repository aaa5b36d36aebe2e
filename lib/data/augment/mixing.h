// Augmentations that blend a sample with another one of the split, targets included.
#pragma once

#include "data/augment/picture_stage.h"

namespace dtrain {

/// What a sample draws decides how it is blended with its partner. Immutable.
class Mixing {
 public:
  /// weight * sample + (1 - weight) * partner; but where is_rectangle, the partner's pixels take the place of
  /// a picture's within the rectangle, and `weight` (1 - its share of the area) is for all other columns.
  struct Blend {
    float weight = 1;
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
