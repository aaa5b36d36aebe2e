// Image resizing.
#include "ops/resize.h"

#include <algorithm>

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {

namespace {

/// Computes one row of the resized image from the source rows `above` and `below`; `part` is the weight of
/// `below`.
void interpolate_row(const ResizeSpec& spec, const float* above, const float* below, float part, float* dst) {
  const int64_t channels = spec.channels;
  const math::ResizedAxis across = spec.across();
  for (int64_t x = 0; x < spec.out_width; ++x) {
    const math::Between place = across.between(static_cast<int32_t>(x));
    const int64_t left = place.first * channels, right = place.second * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float top = above[left + c] + (above[right + c] - above[left + c]) * place.part;
      const float bottom = below[left + c] + (below[right + c] - below[left + c]) * place.part;
      dst[x * channels + c] = top + (bottom - top) * part;
    }
  }
}

/// Adds a row of the resized image's gradient, times `weight`, to a row of the source image's gradient.
void add_row(const ResizeSpec& spec, const float* diff_dst, float weight, float* diff_src) {
  const int64_t channels = spec.channels;
  const math::ResizedAxis across = spec.across();
  for (int64_t x = 0; x < spec.out_width; ++x) {
    const math::Between place = across.between(static_cast<int32_t>(x));
    float* const left = diff_src + place.first * channels;
    float* const right = diff_src + place.second * channels;
    const float of_left = weight * (1.0f - place.part), of_right = weight * place.part;
    for (int64_t c = 0; c < channels; ++c) {
      const float diff = diff_dst[x * channels + c];
      left[c] += of_left * diff;
      right[c] += of_right * diff;
    }
  }
}

}  // namespace

void CpuOps::resize(const ResizeSpec& spec, const void* src, void* dst) {
  const int64_t height = spec.out_height, row = spec.width * spec.channels;
  const int64_t out_row = spec.out_width * spec.channels;
  const math::ResizedAxis down = spec.down();
  each_row(spec.batch * height, out_row, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const math::Between place = down.between(static_cast<int32_t>(r % height));
      const float* const image = f32(src) + r / height * spec.height * row;
      interpolate_row(spec, image + place.first * row, image + place.second * row, place.part,
                      f32(dst) + r * out_row);
    }
  });
}

void CpuOps::resize_backward(const ResizeSpec& spec, const void* diff_dst, void* diff_src) {
  const int64_t row = spec.width * spec.channels, out_row = spec.out_width * spec.channels;
  const math::ResizedAxis down = spec.down();
  // Upper bound of the number of rows of the result that read one source row.
  const int64_t rows_of_source = 1 + 2 * spec.out_height / spec.height;
  each_row(spec.batch * spec.height, rows_of_source * out_row, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto y = static_cast<int32_t>(r % spec.height);
      const float* const image = f32(diff_dst) + r / spec.height * spec.out_height * out_row;
      float* const to = f32(diff_src) + r * row;
      std::fill_n(to, row, 0.0f);
      for (int32_t at = down.begin(y); at < down.end(y); ++at)
        add_row(spec, image + at * out_row, down.weight(at, y), to);
    }
  });
}

}  // namespace dtrain::cpu
