#include "image/bmp_runs.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

class BmpRuns {
 public:
  BmpRuns(std::span<const uint8_t> data, uint32_t bits, int64_t width, int64_t height)
      : data_(data),
        bits_(bits),
        width_(width),
        height_(height),
        pixels_(static_cast<size_t>(width) * static_cast<size_t>(height)) {}

  std::vector<uint8_t> run() {
    while (!ended_ && !(at_ >= data_.size() && has_all_rows())) step();
    return std::move(pixels_);
  }

 private:
  bool has_all_rows() const { return y_ >= height_ || (y_ + 1 == height_ && x_ >= width_); }

  /// Decodes one code. If the first byte is not 0, it is the length of a run that repeats the second byte. If
  /// the first byte is 0, the second byte says whether the row ends, the image ends, the position jumps, or
  /// literal indices follow.
  void step() {
    const uint8_t count = next(), value = next();
    if (count > 0) {
      for (unsigned i = 0; i < count; ++i) put(index_in(value, i));
    } else if (value == 0) {
      x_ = 0;
      ++y_;
    } else if (value == 1) {
      ended_ = true;
    } else if (value == 2) {
      x_ += next();
      y_ += next();
    } else {
      put_all(value);
    }
  }

  /// Copies `count` literal indices. Their bytes are padded to a multiple of 16 bits.
  void put_all(unsigned count) {
    uint8_t byte = 0;
    const unsigned in_byte = 8 / bits_;
    for (unsigned i = 0; i < count; ++i) {
      if (i % in_byte == 0) byte = next();
      put(index_in(byte, i));
    }
    if ((count + in_byte - 1) / in_byte % 2 == 1) next();
  }

  /// Returns the index of the i-th pixel in a byte. If a pixel has 4 bits, the first pixel is in the high
  /// bits.
  uint8_t index_in(uint8_t byte, unsigned i) const {
    if (bits_ == 8) return byte;
    return i % 2 == 0 ? static_cast<uint8_t>(byte >> 4) : static_cast<uint8_t>(byte & 15);
  }

  void put(uint8_t index) {
    if (y_ >= height_)
      throw UserError(fmt::format("expected {} rows as in the BMP header, but found more rows", height_));
    if (x_ < width_) pixels_[static_cast<size_t>(y_ * width_ + x_)] = index;
    ++x_;
  }

  uint8_t next() {
    if (at_ >= data_.size())
      throw UserError(fmt::format(
          "expected a BMP with {} rows, but the data end in row {} (counted from 0 at the bottom)", height_,
          y_));
    return data_[at_++];
  }

  std::span<const uint8_t> data_;
  uint32_t bits_;
  int64_t width_, height_, x_ = 0, y_ = 0;
  size_t at_ = 0;
  bool ended_ = false;
  std::vector<uint8_t> pixels_;
};

}  // namespace

std::vector<uint8_t> decode_bmp_runs(std::span<const uint8_t> data, uint32_t bits, int64_t width,
                                     int64_t height) {
  return BmpRuns(data, bits, width, height).run();
}

}  // namespace dtrain
