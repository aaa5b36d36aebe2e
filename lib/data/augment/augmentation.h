// The kinds of random changes that training pictures undergo, new ones in every epoch.
#pragma once

#include <cstdint>
#include <memory>

#include "config/registry.h"
#include "data/columns/column_plan.h"

namespace dtrain {

class Mixing;  // mixing.h

/// Holds an augmentation's options. Immutable.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  /// Adds its pass to the plan of a column of pictures (is_picture()). `stream` tells its draws from those of
  /// others. Throws UserError where the pictures do not suit it.
  virtual void apply(ColumnPlan& plan, uint32_t stream) const = 0;
  /// What pictures undergo that are not trained on, so that they come to the same shape.
  virtual void apply_in_evaluation(ColumnPlan& /*plan*/) const {}
  /// Whether it means nothing for inputs that are no pictures.
  virtual bool needs_pictures() const { return true; }
  /// How it blends samples, after all other augmentations and the transforms; null where it does not.
  virtual std::shared_ptr<const Mixing> mixing() const { return nullptr; }
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
void add_mix_up(Registry<Augmentation>& table);
void add_cut_mix(Registry<Augmentation>& table);

}  // namespace dtrain
