// Augmentations: random changes to training images, different in every epoch.
#pragma once

#include <cstdint>
#include <memory>

#include "config/registry.h"
#include "data/columns/column_plan.h"
#include "data/pictures/picture_options.h"

namespace dtrain {

class Mixing;  // mixing.h

/// A target that is an image, which augmentations change like the input.
struct AugmentedTarget {
  /// `target` and `input` are the shapes of the stored images; is_picture() is true for both.
  AugmentedTarget(TargetPicture pixels, const Shape& target, const Shape& input, bool is_training);

  TargetPicture pixels;
  /// Pixels of the target per pixel of the input along each axis, if that is a whole number; else 0.
  int64_t scale = 0;
  bool has_same_aspect;  // whether input and target have the same ratio of height to width
  bool is_training;      // false if the target is only changed as apply_in_evaluation() changes its input
};

/// Holds an augmentation's options. Immutable.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  /// Adds its pass to the plan of a column of images (is_picture()). `stream` separates its random draws from
  /// those of other augmentations. Throws UserError if the images do not fit.
  virtual void apply(ColumnPlan& plan, uint32_t stream) const = 0;
  /// Adds the pass for images that are not training images, which gives these images the shape of training
  /// images.
  virtual void apply_in_evaluation(ColumnPlan& /*plan*/) const {}
  /// Returns true if the augmentation moves pixels, so that target images must be changed, too.
  virtual bool moves_pixels() const { return false; }
  /// Adds the pass that moves the pixels of a target image. It draws the same numbers as apply() and
  /// apply_in_evaluation(), and so moves the pixels like those of the input. Class numbers are never blended.
  /// Called if moves_pixels().
  virtual void apply_to_target(ColumnPlan& /*plan*/, uint32_t /*stream*/,
                               const AugmentedTarget& /*target*/) const {}
  /// Returns the class that apply_to_target() writes to mask pixels whose source is outside the image; 0 if
  /// there are no such pixels.
  virtual int64_t filled_class() const { return 0; }
  /// Returns true if the augmentation applies only to inputs that are images.
  virtual bool needs_pictures() const { return true; }
  /// Returns how the augmentation blends samples after all other augmentations and the transforms; null if it
  /// does not blend samples.
  virtual std::shared_ptr<const Mixing> mixing() const { return nullptr; }
};

template <>
const Registry<Augmentation>& registry<Augmentation>();

/// Returns true for the shapes [height, width] and [height, width, channels].
inline bool is_picture(const Shape& shape) {
  return shape.rank() == 2 || shape.rank() == 3;
}

// Each augmentation registers itself; augmentations.cpp lists them.
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
