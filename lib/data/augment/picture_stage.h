// Stages that change images one by one, with random numbers drawn for each sample.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numbers>

#include "base/philox.h"
#include "data/augment/augmentation.h"
#include "data/columns/column_stage.h"

namespace dtrain {

inline constexpr double kTwoPi = 2 * std::numbers::pi;  // a whole turn, in radians

struct PictureShape {
  int64_t height = 0, width = 0, channels = 1;

  explicit PictureShape(const Shape& shape)
      : height(shape[0]), width(shape[1]), channels(shape.rank() > 2 ? shape[2] : 1) {}
  int64_t row_elements() const { return width * channels; }
  int64_t elements() const { return height * width * channels; }
};

/// The random numbers of one augmentation for one sample in one epoch. They depend only on the sample's key
/// and the augmentation's stream.
class Draws {
 public:
  Draws(const SampleKey& key, uint32_t stream) : key_(key), stream_(stream) {}

  /// Returns the next number in [0, 1).
  float uniform() {
    if (next_ % 4 == 0) block_ = key_.draw(stream_, next_ / 4);
    return uniform01(block_.v[next_++ % 4]);
  }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(uniform()); }
  /// Returns the next integer in [0, count). If count is above 2^24, only 2^24 evenly spaced integers occur.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(static_cast<double>(uniform()) * static_cast<double>(count));
  }
  /// Returns a normally distributed number (Box and Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(uniform())));
    return radius * std::cos(kTwoPi * static_cast<double>(uniform()));
  }

 private:
  SampleKey key_;
  uint32_t stream_, next_ = 0;
  Philox::Block block_{};
};

/// A stage that calls `change` for each image. The images have the type of `input`, which `change` must
/// support.
class PictureStage final : public ColumnStage {
 public:
  /// Reads an image from `src` and writes the changed image to `dst`.
  using Change = std::function<void(const std::byte* src, Draws& draws, std::byte* dst)>;

  PictureStage(const TensorSpec& input, TensorSpec output, uint32_t stream, Change change,
               bool is_random = true)
      : ColumnStage(input, std::move(output)),
        stream_(stream),
        change_(std::move(change)),
        is_random_(is_random) {}

  void run(const StageInput& rows, void* dst) const override {
    const size_t bytes = static_cast<size_t>(input().shape.elements()) * bytes_of(input().dtype);
    auto* out = static_cast<std::byte*>(dst);
    for (size_t i = 0; i < rows.size(); ++i, out += output_bytes()) {
      Draws draws(rows.samples.key(i), stream_);
      change_(static_cast<const std::byte*>(rows.base) + static_cast<size_t>(rows.places[i]) * bytes, draws,
              out);
    }
  }
  bool is_random() const override { return is_random_; }

 private:
  uint32_t stream_;
  Change change_;
  bool is_random_;
};

/// Adds a pass over float32 images that keeps their shape. It calls change(src, shape, draws, dst) for each
/// image.
template <class FloatChange>
void add_float_pass(ColumnPlan& plan, uint32_t stream, FloatChange change) {
  plan.cast(DType::float32);
  const PictureShape shape(plan.spec().shape);
  plan.add(std::make_shared<PictureStage>(
      plan.spec(), plan.spec(), stream, [shape, change](const std::byte* src, Draws& draws, std::byte* dst) {
        change(reinterpret_cast<const float*>(src), shape, draws, reinterpret_cast<float*>(dst));
      }));
}

}  // namespace dtrain
