// Augmentations: random changes to training images, different in every epoch.
#pragma once

#include <cstdint>
#include <memory>

#include "config/registry.h"
#include "data/columns/column_plan.h"
#include "data/pictures/picture_options.h"

namespace dtrain {

class Mixing;  // mixing.h

/// A target that is an image. Augmentations that move pixels of the input change this target in the same way.
struct AugmentedTarget {
  /// `target` and `input` are the shapes of the stored images; is_picture() is true for both.
  AugmentedTarget(TargetPicture pixels, const Shape& target, const Shape& input, bool is_training);

  TargetPicture pixels;
  /// Size of the target divided by the size of the input, if the quotient is a whole number and the same for
  /// both axes; else 0.
  int64_t scale = 0;
  bool has_same_aspect;  // whether input and target have the same aspect ratio
  bool is_training;      // if false, only the changes of apply_in_evaluation() are made
};

/// Base class of augmentations. An object holds the options of one augmentation and is immutable.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  /// Adds this augmentation's pass to the plan of an image column (is_picture()). `stream` selects the
  /// augmentation's own sequence of random numbers. Throws UserError if the augmentation cannot be applied to
  /// images of this shape.
  virtual void apply(ColumnPlan& plan, uint32_t stream) const = 0;
  /// Adds the pass for images that are not used for training. The pass gives these images the same shape as
  /// the augmented training images. By default, no pass is added.
  virtual void apply_in_evaluation(ColumnPlan& /*plan*/) const {}
  /// Returns true if the augmentation moves pixels, so that target images must be changed, too.
  virtual bool moves_pixels() const { return false; }
  /// Adds the pass that moves the pixels of a target image. The pass draws the same random numbers as the
  /// pass of the input (apply() or apply_in_evaluation()), so the pixels of target and input are moved alike.
  /// Class numbers are moved, but never interpolated. Called only if moves_pixels() returns true.
  virtual void apply_to_target(ColumnPlan& /*plan*/, uint32_t /*stream*/,
                               const AugmentedTarget& /*target*/) const {}
  /// Returns the class that apply_to_target() writes to mask pixels that are taken from outside the image.
  /// Returns 0 if no mask pixel is taken from outside the image.
  virtual int64_t filled_class() const { return 0; }
  /// Returns true if the augmentation applies only to inputs that are images.
  virtual bool needs_pictures() const { return true; }
  /// Returns how the augmentation blends samples. Blending is done after all other augmentations and after
  /// the transforms. Returns null if the augmentation does not blend samples.
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
