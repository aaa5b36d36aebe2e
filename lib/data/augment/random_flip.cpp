#include <cstring>

#include "data/augment/picture_stage.h"

namespace dtrain {

enum class FlipMode { horizontal, vertical, horizontal_and_vertical };

template <>
inline const EnumNames<FlipMode> names_of<FlipMode> = {
    {FlipMode::horizontal, "horizontal"},
    {FlipMode::vertical, "vertical"},
    {FlipMode::horizontal_and_vertical, "horizontal_and_vertical"}};

namespace {

struct RandomFlipOptions {
  FlipMode mode = FlipMode::horizontal_and_vertical;
};

/// Copies the pixels of a row in reverse order.
template <size_t kBytes>
void reverse_pixels(const std::byte* src, int64_t width, std::byte* dst) {
  for (int64_t x = 0; x < width; ++x)
    std::memcpy(dst + static_cast<size_t>(x) * kBytes, src + static_cast<size_t>(width - 1 - x) * kBytes,
                kBytes);
}

void reverse_row(const std::byte* src, int64_t width, size_t pixel_bytes, std::byte* dst) {
  switch (pixel_bytes) {
    case 1:
      return reverse_pixels<1>(src, width, dst);
    case 3:
      return reverse_pixels<3>(src, width, dst);
    case 12:
      return reverse_pixels<12>(src, width, dst);
    default:
      for (int64_t x = 0; x < width; ++x)
        std::memcpy(dst + static_cast<size_t>(x) * pixel_bytes,
                    src + static_cast<size_t>(width - 1 - x) * pixel_bytes, pixel_bytes);
  }
}

class RandomFlip final : public Augmentation {
 public:
  explicit RandomFlip(const RandomFlipOptions& options) : mode_(options.mode) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override {
    const PictureShape shape(plan.spec().shape);
    const size_t pixel_bytes = static_cast<size_t>(shape.channels) * bytes_of(plan.spec().dtype);
    const bool may_mirror = mode_ != FlipMode::vertical, may_overturn = mode_ != FlipMode::horizontal;
    const auto change = [=](const std::byte* src, Draws& draws, std::byte* dst) {
      const bool mirror = draws.uniform() < 0.5f && may_mirror;
      const bool overturn = draws.uniform() < 0.5f && may_overturn;
      const size_t row_bytes = static_cast<size_t>(shape.width) * pixel_bytes;
      for (int64_t y = 0; y < shape.height; ++y, dst += row_bytes) {
        const std::byte* row = src + static_cast<size_t>(overturn ? shape.height - 1 - y : y) * row_bytes;
        if (mirror)
          reverse_row(row, shape.width, pixel_bytes, dst);
        else
          std::memcpy(dst, row, row_bytes);
      }
    };
    plan.add(std::make_shared<PictureStage>(plan.spec(), plan.spec(), stream, change));
  }
  bool moves_pixels() const override { return true; }
  void apply_to_target(ColumnPlan& plan, uint32_t stream, const AugmentedTarget& target) const override {
    if (target.is_training) apply(plan, stream);
  }

 private:
  FlipMode mode_;
};

}  // namespace

void add_random_flip(Registry<Augmentation>& table) {
  Schema<RandomFlipOptions> schema("Flips each image with probability 1/2.");
  schema.example("{mode: horizontal}");
  schema.optional("mode", &RandomFlipOptions::mode,
                  "direction of the flip: horizontal (left and right), vertical (top and bottom), or both, "
                  "each drawn independently");
  table.add<RandomFlip>("random_flip", schema);
}

}  // namespace dtrain
