// Bilinear resizing with antialiasing, as Pillow's and tf.image.resize(antialias=True): each new pixel is a
// mean of the old ones under a triangle that is as wide as the picture shrinks, so that nothing flickers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace dtrain {

/// The weights of one axis: new pixel i is the sum of weights[first_weight[i] + k] * old[first[i] + k].
struct ResampleAxis {
  /// Takes the part [from, to) of an axis of `extent` old pixels to `size` new ones. Old pixels outside of
  /// the part do not count. 0 <= from < to <= extent.
  ResampleAxis(int64_t extent, double from, double to, int64_t size);

  int64_t size() const { return static_cast<int64_t>(first.size()); }
  /// The old pixel behind the last that new pixel i needs.
  int64_t end(int64_t i) const { return first[static_cast<size_t>(i)] + taps[static_cast<size_t>(i)]; }

  std::vector<int64_t> first, taps;
  std::vector<size_t> first_weight;
  std::vector<float> weights;
  int64_t most_taps = 0;
};

/// Resizes rows as they come: it holds no more of the old picture than one row of the new one needs. The same
/// bits on every processor.
class Resampler {
 public:
  /// Writes the next row of the old picture.
  using ReadRow = std::function<void(uint8_t*)>;

  /// `channels`: 1, 3 or 4, one behind the other in a pixel; `old_width` pixels in a row.
  Resampler(ResampleAxis rows, ResampleAxis columns, int64_t old_width, int channels);

  /// Reads as many rows as are needed, from the first on, and writes the new picture to `dst`, whose rows
  /// are `dst_row_bytes` apart. Returns how many rows were read.
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
  std::vector<uint8_t>
      window_;  // the old rows that the next new one needs, each at its number modulo their count
  std::vector<float> blended_;  // one row: old width, new height; and the room of one load behind it
};

}  // namespace dtrain
