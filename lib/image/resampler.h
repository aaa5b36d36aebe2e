// Bilinear resizing with antialiasing, as in Pillow and tf.image.resize(antialias=True). Each output pixel is
// a weighted mean of input pixels. The weights form a triangle filter. The more the image is downscaled, the
// wider the filter is, which avoids aliasing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace dtrain {

/// The weights of the filter along one axis. Output pixel i is the sum over k < taps[i] of
/// weights[first_weight[i] + k] * input[first[i] + k].
struct ResampleAxis {
  /// Resamples the part [from, to) of an axis with `extent` input pixels to `size` output pixels. Input
  /// pixels outside the part are ignored. Requires 0 <= from < to <= extent.
  ResampleAxis(int64_t extent, double from, double to, int64_t size);

  int64_t size() const { return static_cast<int64_t>(first.size()); }
  /// Returns the end of the input pixels that output pixel i needs (the index of the last one plus 1).
  int64_t end(int64_t i) const { return first[static_cast<size_t>(i)] + taps[static_cast<size_t>(i)]; }

  std::vector<int64_t> first, taps;
  std::vector<size_t> first_weight;
  std::vector<float> weights;
  int64_t most_taps = 0;
};

/// Resizes an image row by row. Only the input rows that are needed for one output row are kept in memory.
/// The result is bitwise identical on every processor.
class Resampler {
 public:
  /// Writes the next input row to the given address.
  using ReadRow = std::function<void(uint8_t*)>;

  /// `channels` is 1, 3 or 4 (interleaved). `old_width` is the number of pixels per input row.
  Resampler(ResampleAxis rows, ResampleAxis columns, int64_t old_width, int channels);

  /// Reads input rows, beginning with the first one, until the output image is complete. Writes the output
  /// image to `dst`. The distance between its rows is `dst_row_bytes`. Returns the number of input rows that
  /// were read.
  int64_t run(const ReadRow& read_row, uint8_t* dst, size_t dst_row_bytes);

 private:
  uint8_t* window_row(int64_t row) {
    return window_.data() + static_cast<size_t>(row % window_rows_) * row_bytes_;
  }
  void blend_rows(int64_t new_row);

  const ResampleAxis rows_, columns_;
  const int channels_;
  const size_t row_bytes_;
  const int64_t window_rows_;
  std::vector<uint8_t> window_;  // input rows that the next output row needs, in a ring buffer
  // One row after vertical resampling, as wide as the input. It has padding because the last pixel is also
  // loaded as 4 floats.
  std::vector<float> blended_;
};

}  // namespace dtrain
