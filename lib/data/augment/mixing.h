// Augmentations that blend a sample and its targets with another sample of the split.
#pragma once

#include "data/augment/picture_stage.h"

namespace dtrain {

/// Draws how a sample is blended with its partner. Immutable.
class Mixing {
 public:
  /// Describes how a sample is blended with its partner. If is_rectangle is false, the result is weight *
  /// sample + (1 - weight) * partner. If is_rectangle is true, the pixels of the image within the rectangle
  /// are replaced by the partner's pixels, and all other columns are blended with `weight`. In this case, 1 -
  /// weight is the rectangle's share of the image's area.
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
/// Blends targets (class probabilities or other numbers) in place. If the blend is a rectangle, the partner's
/// weight is the rectangle's share of the image's area.
void blend_targets(const Mixing::Blend& blend, const float* partner, int64_t count, float* target);

/// Draws a number from the beta distribution with parameters (a, a).
double draw_beta(double a, Draws& draws);

}  // namespace dtrain
