// Bilinear resizing with antialiasing, like Pillow's and tf.image.resize(antialias=True): each output pixel
// is the mean of the input pixels weighted by a triangle filter, which widens with the downscaling factor to
// avoid aliasing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace dtrain {

/// The filter weights of one axis: output pixel i is the sum of weights[first_weight[i] + k] * input[first[i]
/// + k] over k < taps[i].
struct ResampleAxis {
  /// Resamples the part [from, to) of an axis with `extent` input pixels to `size` output pixels. Input
  /// pixels outside the part are ignored. Requires 0 <= from < to <= extent.
  ResampleAxis(int64_t extent, double from, double to, int64_t size);

  int64_t size() const { return static_cast<int64_t>(first.size()); }
  /// Returns the index after the last input pixel that output pixel i needs.
  int64_t end(int64_t i) const { return first[static_cast<size_t>(i)] + taps[static_cast<size_t>(i)]; }

  std::vector<int64_t> first, taps;
  std::vector<size_t> first_weight;
  std::vector<float> weights;
  int64_t most_taps = 0;
};

/// Resizes an image row by row, keeping only the input rows that one output row needs. The result is bitwise
/// equal on every processor.
class Resampler {
 public:
  /// Writes the next input row to its argument.
  using ReadRow = std::function<void(uint8_t*)>;

  /// `channels` is 1, 3 or 4 (interleaved), `old_width` the number of pixels per input row.
  Resampler(ResampleAxis rows, ResampleAxis columns, int64_t old_width, int channels);

  /// Reads as many rows as the output needs, from the first one on, and writes the output image to `dst`,
  /// whose rows are `dst_row_bytes` apart. Returns the number of rows read.
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
  std::vector<float> blended_;   // one vertically resampled row (input width), with padding for the last
                                 // 4-float load
};

}  // namespace dtrain
