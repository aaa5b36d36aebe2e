#include "data/augment/color_ops.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dtrain {

namespace {

float within_bytes(float value) {
  return std::clamp(value, 0.0f, 255.0f);
}

}  // namespace

void change_contrast(const float* src, const PictureShape& shape, float factor, float least, float most,
                     float* dst) {
  for (int64_t c = 0; c < shape.channels; ++c) {
    double sum = 0;
    for (int64_t i = c; i < shape.elements(); i += shape.channels) sum += static_cast<double>(src[i]);
    const auto mean = static_cast<float>(sum / static_cast<double>(shape.height * shape.width));
    for (int64_t i = c; i < shape.elements(); i += shape.channels)
      dst[i] = std::clamp((src[i] - mean) * factor + mean, least, most);
  }
}

void degenerate_color(const float* src, const PictureShape& shape, float part, float* dst) {
  if (shape.channels != 3) {
    std::copy_n(src, shape.elements(), dst);
    return;
  }
  for (int64_t i = 0; i < shape.elements(); i += 3) {
    const float gray = 0.2989f * src[i] + 0.587f * src[i + 1] + 0.114f * src[i + 2];
    for (int64_t c = i; c < i + 3; ++c) dst[c] = within_bytes(src[c] + part * (gray - src[c]));
  }
}

void sharpen(const float* src, const PictureShape& shape, float factor, float* dst) {
  const int64_t row = shape.row_elements();
  for (int64_t y = 0; y < shape.height; ++y)
    for (int64_t x = 0; x < shape.width; ++x)
      for (int64_t c = 0; c < shape.channels; ++c) {
        float sum = 0;
        for (int64_t j = std::max<int64_t>(0, y - 1); j < std::min(shape.height, y + 2); ++j)
          for (int64_t i = std::max<int64_t>(0, x - 1); i < std::min(shape.width, x + 2); ++i)
            sum += src[j * row + i * shape.channels + c] * (i == x && j == y ? 5.0f : 1.0f);
        const float value = src[y * row + x * shape.channels + c];
        *dst++ = within_bytes(value + (1 - 2 * factor) * (sum / 13 - value));
      }
}

void posterize(const float* src, const PictureShape& shape, int bits, float* dst) {
  const auto kept = static_cast<unsigned>(0xff << (8 - bits)) & 0xff;
  for (int64_t i = 0; i < shape.elements(); ++i)
    dst[i] = static_cast<float>(static_cast<unsigned>(within_bytes(src[i])) & kept);
}

void solarize(const float* src, const PictureShape& shape, float addition, float threshold, float* dst) {
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const float more = within_bytes(src[i] + addition);
    dst[i] = more < threshold ? more : 255 - more;
  }
}

void stretch_contrast(const float* src, const PictureShape& shape, float* dst) {
  for (int64_t c = 0; c < shape.channels; ++c) {
    float low = src[c], high = src[c];
    for (int64_t i = c; i < shape.elements(); i += shape.channels) {
      low = std::min(low, src[i]);
      high = std::max(high, src[i]);
    }
    const float scale = 255 / (high - low), offset = -low * scale;
    for (int64_t i = c; i < shape.elements(); i += shape.channels)
      dst[i] = high > low ? within_bytes(src[i] * scale + offset) : src[i];
  }
}

void equalize(const float* src, const PictureShape& shape, float* dst) {
  const auto bin_of = [](float value) { return static_cast<size_t>(within_bytes(value)); };
  for (int64_t c = 0; c < shape.channels; ++c) {
    // `below` is first a histogram. Then each bin is replaced with the number of values in this bin and all
    // lower bins.
    std::array<int64_t, 256> below{};
    for (int64_t i = c; i < shape.elements(); i += shape.channels) ++below[bin_of(src[i])];
    for (size_t bin = 1; bin < below.size(); ++bin) below[bin] += below[bin - 1];
    const int64_t least = *std::find_if(below.begin(), below.end(), [](int64_t n) { return n > 0; });
    const int64_t rest = below.back() - least;
    for (int64_t i = c; i < shape.elements(); i += shape.channels)
      dst[i] = rest == 0
                   ? src[i]
                   : static_cast<float>(std::nearbyint(static_cast<double>(below[bin_of(src[i])] - least) *
                                                       255 / static_cast<double>(rest)));
  }
}

}  // namespace dtrain
