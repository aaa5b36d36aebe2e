#include "report/input_pictures.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "image/encode.h"

namespace dtrain {

namespace {

/// Reads a column of any type as floats.
std::vector<float> read_numbers(const Dataset& samples, size_t column, const Samples& wanted, size_t count) {
  std::vector<float> numbers(count);
  const auto widen = [&]<class V>(std::vector<V> values) {
    samples.read_column(column, wanted, values.data());
    std::transform(values.begin(), values.end(), numbers.begin(), [](V v) { return static_cast<float>(v); });
  };
  switch (samples.columns()[column].dtype) {
    case DType::float32:
      samples.read_column(column, wanted, numbers.data());
      break;
    case DType::int32:
      widen(std::vector<int32_t>(count));
      break;
    case DType::uint8:
      widen(std::vector<uint8_t>(count));
      break;
    case DType::bfloat16:
    case DType::float16:
    case DType::float64:
      throw std::logic_error("no dataset has columns of this type");
  }
  return numbers;
}

/// Converts values in [0, 1] or in [0, 255] to bytes. If any value is outside these ranges, scales the values
/// such that the minimum is black and the maximum is white.
std::vector<uint8_t> pixels_of(const std::vector<float>& numbers) {
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  float black = 0, white = *most <= 1 ? 1.0f : 255.0f;
  if (*least < 0 || *most > 255) {
    black = *least;
    white = *most;
  }
  std::vector<uint8_t> pixels;
  pixels.reserve(numbers.size());
  for (const float number : numbers) {
    const float share = (number - black) / (white - black);
    pixels.push_back(std::isfinite(share)
                         ? static_cast<uint8_t>(std::lround(255 * std::clamp(share, 0.0f, 1.0f)))
                         : uint8_t{0});
  }
  return pixels;
}

int64_t channels_of(const TensorSpec& spec) {
  return spec.shape.rank() == 3 ? spec.shape[2] : 1;
}

}  // namespace

bool is_picture_input(const TensorSpec& spec) {
  const int64_t channels = channels_of(spec);
  return (spec.shape.rank() == 2 || spec.shape.rank() == 3) &&
         (channels == 1 || channels == 3 || channels == 4) && spec.shape.elements() > 0;
}

std::string Picture::png() const {
  return encode_png(pixels, height, width, channels);
}

Picture Picture::reduced(int64_t most) const {
  const int64_t step = (std::max(height, width) + most - 1) / most;
  if (step <= 1) return *this;
  Picture small{(height + step - 1) / step, (width + step - 1) / step, channels, {}};
  for (int64_t y = 0; y < height; y += step)
    for (int64_t x = 0; x < width; x += step) {
      const auto pixel = pixels.begin() + (y * width + x) * channels;
      small.pixels.insert(small.pixels.end(), pixel, pixel + channels);
    }
  return small;
}

Picture read_picture(const Dataset& samples, size_t column, int64_t row, uint64_t seed) {
  const TensorSpec& spec = samples.columns()[column];
  const auto elements = static_cast<size_t>(spec.shape.elements());
  return {spec.shape[0], spec.shape[1], channels_of(spec),
          pixels_of(read_numbers(samples, column, {{&row, 1}, seed, 0}, elements))};
}

}  // namespace dtrain
