// RandAugment (E. Cubuk et al., "RandAugment: practical automated data augmentation with a reduced search
// space", 2020) with Keras's operations and ranges.
#include <algorithm>
#include <vector>

#include "data/augment/color_ops.h"
#include "data/augment/options.h"

namespace dtrain {

namespace {

struct RandAugmentOptions {
  ValueRange value_range{0, 255};
  int64_t num_ops = 2;
  double factor = 0.5;
  Interpolation interpolation = Interpolation::bilinear;
};

// Number of operations. The first kMoves operations move pixels, and the others change colors.
constexpr int64_t kOperations = 11, kMoves = 3;

/// Applies the operation with the index `operation` to an image with values from 0 to 255.
void operate(int64_t operation, const RandAugmentOptions& options, const PictureShape& shape, Draws& draws,
             const float* src, float* dst) {
  const WarpOptions warp_options{FillMode::reflect, options.interpolation, 0};
  const auto strength = [&] { return draws.uniform(0, options.factor); };
  const auto small = [&] { return static_cast<float>(strength()); };
  switch (operation) {
    case 0: {
      const double sign = draws.uniform() > 0.5f ? -1 : 1, y = sign * strength(), x = sign * strength();
      return warp(src, shape, {1, x, 0, y, 1, 0}, warp_options, dst);
    }
    case 1: {
      const double down = strength(), right = strength();
      return warp(src, shape, translation(shape, down, right), warp_options, dst);
    }
    case 2:
      return warp(src, shape, rotation(shape, kTwoPi * strength()), warp_options, dst);
    case 3: {
      const float more = 255 * small();
      std::transform(src, src + shape.elements(), dst,
                     [&](float v) { return std::clamp(v + more, 0.0f, 255.0f); });
      return;
    }
    case 4:
      return degenerate_color(src, shape, small(), dst);
    case 5:
      return change_contrast(src, shape, 1 + small(), 0, 255, dst);
    case 6:
      return sharpen(src, shape, small(), dst);
    case 7: {
      const auto most = std::max<int64_t>(1, static_cast<int64_t>(8 * options.factor));
      return posterize(src, shape, static_cast<int>(1 + draws.below(std::max<int64_t>(1, most - 1))), dst);
    }
    case 8: {
      const float addition = 255 * small(), threshold = 255 * small();
      return solarize(src, shape, addition, threshold, dst);
    }
    case 9:
      return stretch_contrast(src, shape, dst);
    default:
      return equalize(src, shape, dst);
  }
}

class RandAugment final : public Augmentation {
 public:
  explicit RandAugment(const RandAugmentOptions& options) : options_(options) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override {
    add_float_pass(
        plan, stream,
        [options = options_](const float* src, const PictureShape& shape, Draws& draws, float* dst) {
          const auto least = static_cast<float>(options.value_range[0]);
          const float scale = 255 / (static_cast<float>(options.value_range[1]) - least);
          std::vector<float> now(static_cast<size_t>(shape.elements())), next(now.size());
          std::transform(src, src + now.size(), now.begin(), [&](float v) { return (v - least) * scale; });
          for (int64_t i = 0; i < options.num_ops; ++i) {
            operate(draws.below(kOperations), options, shape, draws, now.data(), next.data());
            now.swap(next);
          }
          std::transform(now.begin(), now.end(), dst, [&](float v) { return v / scale + least; });
        });
  }

  bool moves_pixels() const override { return true; }
  void apply_to_target(ColumnPlan& plan, uint32_t stream, const AugmentedTarget& target) const override {
    if (!target.is_training) return;
    RandAugmentOptions options = options_;
    if (target.pixels == TargetPicture::classes) options.interpolation = Interpolation::nearest;
    add_float_pass(plan, stream,
                   [options](const float* src, const PictureShape& shape, Draws& draws, float* dst) {
                     std::vector<float> now(src, src + shape.elements()), next(now.size());
                     for (int64_t i = 0; i < options.num_ops; ++i) {
                       const int64_t operation = draws.below(kOperations);
                       operate(operation, options, shape, draws, now.data(), next.data());
                       if (operation < kMoves) now.swap(next);
                     }
                     std::copy(now.begin(), now.end(), dst);
                   });
  }

 private:
  RandAugmentOptions options_;
};

}  // namespace

void add_rand_augment(Registry<Augmentation>& table) {
  using Options = RandAugmentOptions;
  Schema<Options> schema(
      "Applies randomly chosen operations to each image: shear, translation, rotation, brightness, "
      "color_degeneration, contrast, sharpness, posterization, solarization, auto_contrast, equalization.");
  schema.example("{num_ops: 2, factor: 0.3}");
  schema
      .optional("value_range", &Options::value_range,
                "the range [minimum, maximum] of the values of an image", two_ascending())
      .optional("num_ops", &Options::num_ops,
                "number of operations to apply to each image, one after the other", between<int64_t>(1, 100))
      .optional("factor", &Options::factor,
                "maximum strength of an operation. The strength of each operation is drawn between 0 and "
                "this value",
                between<double>(0, 1))
      .optional("interpolation", &Options::interpolation, "interpolation between pixels");
  table.add<RandAugment>("rand_augment", schema);
}

}  // namespace dtrain
