#include "data/augment/augmentation.h"

namespace dtrain {

AugmentedTarget::AugmentedTarget(TargetPicture of_pixels, const Shape& target, const Shape& input,
                                 bool for_training)
    : pixels(of_pixels),
      has_same_aspect(target[0] * input[1] == target[1] * input[0]),
      is_training(for_training) {
  if (has_same_aspect && target[0] % input[0] == 0 && target[1] % input[1] == 0) scale = target[0] / input[0];
}

template <>
const Registry<Augmentation>& registry<Augmentation>() {
  static const Registry<Augmentation> table = [] {
    Registry<Augmentation> all("augmentation");
    add_random_flip(all);
    add_random_crop(all);
    add_random_rotation(all);
    add_random_translation(all);
    add_random_zoom(all);
    add_random_brightness(all);
    add_random_contrast(all);
    add_random_erasing(all);
    add_rand_augment(all);
    add_mix_up(all);
    add_cut_mix(all);
    return all;
  }();
  return table;
}

}  // namespace dtrain
