// The kinds of random changes that training pictures undergo, new ones in every epoch.
#pragma once

#include <cstdint>

#include "config/registry.h"
#include "data/column_plan.h"

namespace dtrain {

/// Holds an augmentation's options. Immutable.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  /// Adds its pass to the plan of a column of pictures (is_picture()). `stream` tells its draws from those of
  /// others. Throws UserError where the pictures do not suit it.
  virtual void apply(ColumnPlan& plan, uint32_t stream) const = 0;
  /// What pictures undergo that are not trained on, so that they come to the same shape.
  virtual void apply_in_evaluation(ColumnPlan& /*plan*/) const {}
};

template <>
const Registry<Augmentation>& registry<Augmentation>();

/// [height, width] or [height, width, channels].
inline bool is_picture(const Shape& shape) {
  return shape.rank() == 2 || shape.rank() == 3;
}

// Each augmentation adds itself; augmentations.cpp lists them.
void add_random_flip(Registry<Augmentation>& table);
void add_random_crop(Registry<Augmentation>& table);
void add_random_rotation(Registry<Augmentation>& table);
void add_random_translation(Registry<Augmentation>& table);
void add_random_zoom(Registry<Augmentation>& table);
void add_random_brightness(Registry<Augmentation>& table);
void add_random_contrast(Registry<Augmentation>& table);
void add_random_erasing(Registry<Augmentation>& table);
void add_rand_augment(Registry<Augmentation>& table);

}  // namespace dtrain
