#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "data/augment/options.h"
#include "data/augment/picture_stage.h"

namespace dtrain {

namespace {

struct RandomCropOptions {
  int64_t height = 0, width = 0, padding = 0, fill_class = 0;
};

/// Copies the part of an image that begins at (top, left). Sets bytes outside the image to `fill`.
void copy_part(const std::byte* src, const PictureShape& shape, size_t pixel_bytes, int64_t top, int64_t left,
               int64_t height, int64_t width, int fill, std::byte* dst) {
  const int64_t from = std::clamp<int64_t>(left, 0, shape.width);
  const int64_t to = std::clamp<int64_t>(left + width, 0, shape.width);
  const size_t dst_row_bytes = static_cast<size_t>(width) * pixel_bytes;
  for (int64_t y = top; y < top + height; ++y, dst += dst_row_bytes) {
    const bool inside = y >= 0 && y < shape.height;
    if (!inside || to - from < width) std::memset(dst, fill, dst_row_bytes);
    if (inside && to > from)
      std::memcpy(dst + static_cast<size_t>(from - left) * pixel_bytes,
                  src + static_cast<size_t>(y * shape.width + from) * pixel_bytes,
                  static_cast<size_t>(to - from) * pixel_bytes);
  }
}

class RandomCrop final : public Augmentation {
 public:
  explicit RandomCrop(const RandomCropOptions& options) : options_(options) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override { add_pass(plan, stream, true, 1, 0); }

  /// Crops images to their central part.
  void apply_in_evaluation(ColumnPlan& plan) const override { evaluate(plan, 1, 0); }

  bool moves_pixels() const override { return true; }
  int64_t filled_class() const override { return options_.padding > 0 ? options_.fill_class : 0; }
  void apply_to_target(ColumnPlan& plan, uint32_t stream, const AugmentedTarget& target) const override {
    if (target.scale == 0)
      throw UserError(
          fmt::format("random_crop: target images must have the size of the inputs or a whole multiple of "
                      "this size, but found target images of {}",
                      plan.stored().shape.str()));
    const int fill = target.pixels == TargetPicture::classes ? static_cast<int>(options_.fill_class) : 0;
    if (target.is_training)
      add_pass(plan, stream, true, target.scale, fill);
    else
      evaluate(plan, target.scale, fill);
  }

 private:
  void evaluate(ColumnPlan& plan, int64_t scale, int fill) const {
    const PictureShape shape(plan.spec().shape);
    if (shape.height != options_.height * scale || shape.width != options_.width * scale)
      add_pass(plan, 0, false, scale, fill);
  }

  /// Adds the pass that crops images. `scale` is the size of these images divided by the size of the input.
  /// The position of the crop is drawn in pixels of the input and then multiplied by `scale`, so that input
  /// and target show the same part.
  void add_pass(ColumnPlan& plan, uint32_t stream, bool is_random, int64_t scale, int fill) const {
    const PictureShape shape(plan.spec().shape);
    const auto [height, width, padding, fill_class] = options_;
    const int64_t rows = shape.height / scale + 2 * padding - height;
    const int64_t columns = shape.width / scale + 2 * padding - width;
    if (rows < 0 || columns < 0)
      throw UserError(
          fmt::format("random_crop: after padding, images must have at least {}x{} pixels; the padding is {} "
                      "pixels on each side, but the images have only {}x{} pixels before padding",
                      height, width, padding, shape.height / scale, shape.width / scale));
    const size_t pixel_bytes = static_cast<size_t>(shape.channels) * bytes_of(plan.spec().dtype);
    const auto change = [=, height = height * scale, width = width * scale, padding = padding](
                            const std::byte* src, Draws& draws, std::byte* dst) {
      const int64_t top = is_random ? draws.below(rows + 1) : rows / 2;
      const int64_t left = is_random ? draws.below(columns + 1) : columns / 2;
      copy_part(src, shape, pixel_bytes, (top - padding) * scale, (left - padding) * scale, height, width,
                fill, dst);
    };
    TensorSpec cropped = plan.spec();
    cropped.shape[0] = height * scale;
    cropped.shape[1] = width * scale;
    plan.add(std::make_shared<PictureStage>(plan.spec(), std::move(cropped), stream, change, is_random));
  }

  RandomCropOptions options_;
};

}  // namespace

void add_random_crop(Registry<Augmentation>& table) {
  Schema<RandomCropOptions> schema("Crops each image at a random position.");
  schema.example("{height: 32, width: 32, padding: 4}");
  schema
      .required("height", &RandomCropOptions::height, "height of the crop",
                between<int64_t>(1, Size2::kMostExtent))
      .required("width", &RandomCropOptions::width, "width of the crop",
                between<int64_t>(1, Size2::kMostExtent))
      .optional("padding", &RandomCropOptions::padding,
                "number of pixels with the value 0 that are added on each of the four sides before the image "
                "is cropped",
                between<int64_t>(0, 1 << 20))
      .optional("fill_class", &RandomCropOptions::fill_class,
                "class of the added pixels, if the target is a mask", class_numbers_of_bytes());
  table.add<RandomCrop>("random_crop", schema);
}

}  // namespace dtrain
