// The base of augmentations that warp images with a random affine map.
#pragma once

#include "data/augment/options.h"
#include "data/augment/picture_stage.h"
#include "data/augment/warp.h"

namespace dtrain {

/// Warps each image with a random affine map. `Options` derives from WarpOptions, and options.draw(shape,
/// draws) returns the map. The random draws must not depend on the shape because inputs and targets of
/// different sizes must get the same map.
template <class Options>
class WarpAugmentation final : public Augmentation {
 public:
  explicit WarpAugmentation(const Options& options) : options_(options) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override { add(plan, stream, options_); }
  bool moves_pixels() const override { return true; }
  int64_t filled_class() const override {
    return options_.fill_mode == FillMode::constant ? options_.fill_class : 0;
  }
  void apply_to_target(ColumnPlan& plan, uint32_t stream, const AugmentedTarget& target) const override {
    if (!target.is_training) return;
    WarpOptions options = options_;
    if (target.pixels == TargetPicture::classes) {
      options.interpolation = Interpolation::nearest;
      options.fill_value = static_cast<double>(options.fill_class);
    }
    add(plan, stream, options);
  }

 private:
  void add(ColumnPlan& plan, uint32_t stream, const WarpOptions& warp_options) const {
    add_float_pass(plan, stream,
                   [options = options_, warp_options](const float* src, const PictureShape& shape,
                                                      Draws& draws, float* dst) {
                     warp(src, shape, options.draw(shape, draws), warp_options, dst);
                   });
  }

  Options options_;
};

}  // namespace dtrain
