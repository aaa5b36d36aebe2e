#include "image/resampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/vector_clones.h"

namespace dtrain {

namespace {

/// sum += weight * row.
DTRAIN_VECTOR_CLONES void add_row(const uint8_t* __restrict row, float weight, float* __restrict sum,
                                  size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += weight * static_cast<float>(row[i]);
}

DTRAIN_VECTOR_CLONES void begin_row(const uint8_t* __restrict row, float weight, float* __restrict sum,
                                    size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = weight * static_cast<float>(row[i]);
}

/// Rounds a weighted mean to an integer. The weights are positive and their sum is 1, so the mean is between
/// 0 and 255. Because of rounding errors, it may be slightly above 255.
uint8_t rounded(float mean) {
  return static_cast<uint8_t>(std::min(mean + 0.5f, 255.0f));
}

/// A portable SIMD vector of four floats.
using Float4 = float __attribute__((vector_size(16)));

/// Resamples one row of pixels with 3 or 4 channels. Four floats are loaded for each pixel, even if it has
/// only 3 channels.
void blend_pixels(const ResampleAxis& axis, int channels, const float* src, uint8_t* dst) {
  const auto step = static_cast<size_t>(channels);
  for (size_t i = 0; i < axis.first.size(); ++i) {
    const float* pixel = src + static_cast<size_t>(axis.first[i]) * step;
    const float* weight = axis.weights.data() + axis.first_weight[i];
    Float4 sum = {0, 0, 0, 0};
    for (int64_t k = 0; k < axis.taps[i]; ++k, pixel += step) {
      Float4 value;
      std::memcpy(&value, pixel, sizeof value);
      sum += weight[k] * value;
    }
    for (int c = 0; c < channels; ++c) *dst++ = rounded(sum[c]);
  }
}

void blend_gray(const ResampleAxis& axis, const float* src, uint8_t* dst) {
  for (size_t i = 0; i < axis.first.size(); ++i) {
    const float* weight = axis.weights.data() + axis.first_weight[i];
    float sum = 0;
    for (int64_t k = 0; k < axis.taps[i]; ++k) sum += weight[k] * src[axis.first[i] + k];
    dst[i] = rounded(sum);
  }
}

}  // namespace

ResampleAxis::ResampleAxis(int64_t extent, double from, double to, int64_t size) {
  const double step = (to - from) / static_cast<double>(size);
  const double reach = std::max(step, 1.0);  // half the width of the triangle filter
  const auto least = static_cast<int64_t>(std::floor(from));
  const auto most = std::min(extent, static_cast<int64_t>(std::ceil(to)));
  for (int64_t i = 0; i < size; ++i) {
    const double center = from + (static_cast<double>(i) + 0.5) * step;
    const int64_t begin = std::clamp(static_cast<int64_t>(std::floor(center - reach + 0.5)), least, most - 1);
    const int64_t end = std::clamp(static_cast<int64_t>(std::floor(center + reach + 0.5)), begin + 1, most);
    std::vector<double> triangle;
    double sum = 0;
    for (int64_t x = begin; x < end; ++x) {
      triangle.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(x) + 0.5 - center) / reach));
      sum += triangle.back();
    }
    // At the edge of an image that was downscaled while it was decoded, there may be no pixel within reach.
    // The sum of the weights is then 0.
    if (sum <= 0) sum = triangle[0] = 1;
    first.push_back(begin);
    taps.push_back(end - begin);
    first_weight.push_back(weights.size());
    for (const double weight : triangle) weights.push_back(static_cast<float>(weight / sum));
    most_taps = std::max(most_taps, end - begin);
  }
}

Resampler::Resampler(ResampleAxis rows, ResampleAxis columns, int64_t old_width, int channels)
    : rows_(std::move(rows)),
      columns_(std::move(columns)),
      channels_(channels),
      row_bytes_(static_cast<size_t>(old_width) * static_cast<size_t>(channels)),
      window_rows_(rows_.most_taps),
      window_(row_bytes_ * static_cast<size_t>(window_rows_)),
      blended_(row_bytes_ + 4) {}

void Resampler::blend_rows(int64_t new_row) {
  const auto i = static_cast<size_t>(new_row);
  const float* weight = rows_.weights.data() + rows_.first_weight[i];
  // Columns that no output pixel needs are skipped.
  const size_t from = static_cast<size_t>(columns_.first.front()) * static_cast<size_t>(channels_);
  const size_t to = static_cast<size_t>(columns_.end(columns_.size() - 1)) * static_cast<size_t>(channels_);
  begin_row(window_row(rows_.first[i]) + from, weight[0], blended_.data() + from, to - from);
  for (int64_t k = 1; k < rows_.taps[i]; ++k)
    add_row(window_row(rows_.first[i] + k) + from, weight[k], blended_.data() + from, to - from);
}

int64_t Resampler::run(const ReadRow& read_row, uint8_t* dst, size_t dst_row_bytes) {
  int64_t read = 0;
  for (int64_t i = 0; i < rows_.size(); ++i, dst += dst_row_bytes) {
    for (; read < rows_.end(i); ++read) read_row(window_row(read));
    blend_rows(i);
    if (channels_ == 1)
      blend_gray(columns_, blended_.data(), dst);
    else
      blend_pixels(columns_, channels_, blended_.data(), dst);
  }
  return read;
}

}  // namespace dtrain
