// Augmentations that blend a sample and its targets with another sample of the split.
#pragma once

#include "data/augment/picture_stage.h"

namespace dtrain {

/// Draws how a sample is blended with its partner. Immutable.
class Mixing {
 public:
  /// A blend of a sample and its partner: weight * sample + (1 - weight) * partner. If is_rectangle is true,
  /// the partner's pixels instead replace those of the image within the rectangle, and `weight` (1 - the
  /// rectangle's share of the area) applies to all other columns.
  struct Blend {
    float weight = 1;
    bool is_rectangle = false;
    int64_t top = 0, bottom = 0, left = 0, right = 0;  // rows [top, bottom), columns [left, right)
  };

  virtual ~Mixing() = default;
  virtual Blend draw(const PictureShape& shape, Draws& draws) const = 0;
};

/// Blends an image of this shape with its partner, in place.
void blend_pictures(const Mixing::Blend& blend, const PictureShape& shape, const float* partner,
                    float* picture);
/// Blends targets (class probabilities or other numbers) in place; a rectangle counts by its share of the
/// area.
void blend_targets(const Mixing::Blend& blend, const float* partner, int64_t count, float* target);

/// Draws a number from the beta distribution with parameters (a, a).
double draw_beta(double a, Draws& draws);

}  // namespace dtrain
