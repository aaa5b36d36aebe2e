// Decodes BMP images with 1, 4, 8, 16, 24 or 32 bits per pixel. They may be uncompressed or, with 4 or 8 bits
// per pixel, run-length encoded.
// https://learn.microsoft.com/en-us/windows/win32/gdi/bitmap-storage
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "image/bmp_runs.h"
#include "image/picture_rows.h"

namespace dtrain {

namespace {

constexpr uint32_t kRuns8 = 1, kRuns4 = 2;  // values of the field "compression" of the header
// Maximum number of pixels per byte: a run of up to 255 pixels takes two bytes.
constexpr int64_t kMostOfRun = 128;

class BmpRows final : public PictureRows {
 public:
  BmpRows(std::span<const uint8_t> bytes, size_t file_bytes) : bytes_(bytes) {
    const uint32_t header = number(14, 4);
    const bool old = header == 12;  // OS/2 header, with 16-bit sizes
    const auto stored_height =
        old ? static_cast<int32_t>(number(20, 2)) : static_cast<int32_t>(number(22, 4));
    const int64_t width = old ? number(18, 2) : static_cast<int32_t>(number(18, 4));
    const int64_t height = stored_height < 0 ? -int64_t{stored_height} : stored_height;
    bottom_up_ = stored_height > 0;
    bits_ = number(old ? 24 : 28, 2);
    const uint32_t compression = old ? 0 : number(30, 4);
    has_runs_ = (compression == kRuns8 && bits_ == 8) || (compression == kRuns4 && bits_ == 4);
    set_full_size(width, height, file_bytes, has_runs_ ? kMostOfRun : 8);
    if (has_runs_ && !bottom_up_)
      throw UserError(
          "expected run-length encoded rows from bottom to top, but the rows are from top to bottom");
    const size_t colors_end = read_colors(header, old, compression);
    first_pixel_ = number(10, 4);
    if (bits_ <= 8 && first_pixel_ == 14 + header)
      first_pixel_ = colors_end;  // some programs write an offset that does not include the palette
    if (first_pixel_ < colors_end)
      throw UserError(
          fmt::format("expected pixels after the header and the palette, which end at byte {}, but the "
                      "pixels begin at byte {}",
                      colors_end, first_pixel_));
    if (has_runs_) return;
    row_bytes_ = (static_cast<size_t>(width) * bits_ + 31) / 32 * 4;
    const uint64_t end = first_pixel_ + static_cast<uint64_t>(row_bytes_) * static_cast<uint64_t>(height);
    if (end > file_bytes)
      throw UserError(fmt::format(
          "expected a BMP of {} bytes, as its header says, but the file has only {} bytes", end, file_bytes));
  }

  void start(int, double) override {
    width_ = full_width();
    height_ = full_height();
    channels_ = masks_[3].bits ? 4 : 3;
    if (has_runs_)
      indices_ =
          decode_bmp_runs(bytes_.subspan(std::min(first_pixel_, bytes_.size())), bits_, width_, height_);
  }

  void read(uint8_t* row) override {
    const int64_t stored = bottom_up_ ? height_ - 1 - next_row_ : next_row_;
    ++next_row_;
    const auto width = static_cast<size_t>(width_);
    if (has_runs_) return indexed_row(indices_.data() + static_cast<size_t>(stored) * width, width, 8, row);
    const uint8_t* src = bytes_.data() + first_pixel_ + static_cast<size_t>(stored) * row_bytes_;
    if (bits_ <= 8)
      indexed_row(src, width, bits_, row);
    else if (bits_ == 24)
      for (size_t x = 0; x < width; ++x)
        for (size_t c = 0; c < 3; ++c) row[3 * x + c] = src[3 * x + 2 - c];
    else
      masked_row(src, width, row);
  }

 private:
  /// The bits of a 16- or 32-bit pixel that contain one channel.
  struct Mask {
    uint32_t bits = 0;
    uint8_t of(uint32_t pixel) const {
      if (!bits) return 0;
      const uint64_t value = (pixel & bits) >> std::countr_zero(bits);
      return static_cast<uint8_t>(value * 255 / (bits >> std::countr_zero(bits)));
    }
  };

  uint32_t number(size_t offset, size_t size) const {
    if (bytes_.size() < offset + size)
      throw UserError(fmt::format("expected a BMP header, but the file ends after {} bytes", bytes_.size()));
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint32_t{bytes_[offset + i]} << (8 * i);
    return value;
  }

  /// Reads the masks or the palette. Returns the offset at which the header, the masks and the palette end.
  size_t read_colors(uint32_t header, bool old, uint32_t compression) {
    constexpr uint32_t kBitFields = 3, kAlphaBitFields = 6;
    const bool fields = compression == kBitFields || compression == kAlphaBitFields;
    if (bits_ == 1 || bits_ == 4 || bits_ == 8) {
      if (compression != 0 && !has_runs_) fail_compression(compression, bits_);
      return read_palette(header, old);
    }
    if (bits_ != 16 && bits_ != 24 && bits_ != 32)
      throw UserError(fmt::format("expected 1, 4, 8, 16, 24 or 32 bits per pixel, found {}", bits_));
    if (compression != 0 && (!fields || bits_ == 24)) fail_compression(compression, bits_);
    if (fields) {
      for (size_t i = 0; i < 3; ++i) masks_[i].bits = number(54 + 4 * i, 4);
      if (header >= 56 || compression == kAlphaBitFields) masks_[3].bits = number(66, 4);
    } else if (bits_ == 16) {
      masks_ = {{{0x7c00}, {0x03e0}, {0x001f}, {0}}};
    } else {  // the fourth byte is unused
      masks_ = {{{0xff0000}, {0x00ff00}, {0x0000ff}, {0}}};
    }
    // Headers of more than 40 bytes already include the masks.
    const size_t masks = !fields || header > 40 ? 0 : compression == kAlphaBitFields ? 16 : 12;
    return 14 + header + masks;
  }

  [[noreturn]] static void fail_compression(uint32_t compression, uint32_t bits) {
    throw UserError(
        fmt::format("expected an uncompressed BMP, or run-length encoding with 4 or 8 bits per pixel, but "
                    "found compression {} with {} bits per pixel",
                    compression, bits));
  }

  /// Reads the palette and returns the offset of its end.
  size_t read_palette(uint32_t header, bool old) {
    const size_t entry = old ? 3 : 4, most = size_t{1} << bits_;
    const size_t declared = old ? 0 : number(46, 4);
    const size_t count = declared == 0 || declared > most ? most : declared;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t color = number(14 + header + entry * i, 3);
      palette_[i] = {static_cast<uint8_t>(color >> 16), static_cast<uint8_t>(color >> 8),
                     static_cast<uint8_t>(color)};
    }
    return 14 + header + entry * count;
  }

  /// Converts a row of palette indices to colors. Each index has `bits` bits. The first pixel of a
  /// byte is in its highest bits.
  void indexed_row(const uint8_t* src, size_t width, uint32_t bits, uint8_t* row) const {
    const size_t in_byte = 8 / bits;
    for (size_t x = 0; x < width; ++x) {
      const size_t shift = (in_byte - 1 - x % in_byte) * bits;
      const auto& color =
          palette_[static_cast<size_t>(src[x / in_byte] >> shift) & ((size_t{1} << bits) - 1)];
      for (size_t c = 0; c < 3; ++c) row[3 * x + c] = color[c];
    }
  }

  void masked_row(const uint8_t* src, size_t width, uint8_t* row) const {
    const size_t bytes = bits_ / 8, channels = static_cast<size_t>(channels_);
    for (size_t x = 0; x < width; ++x) {
      uint32_t pixel = 0;
      for (size_t i = 0; i < bytes; ++i) pixel |= uint32_t{src[bytes * x + i]} << (8 * i);
      for (size_t c = 0; c < channels; ++c) row[channels * x + c] = masks_[c].of(pixel);
    }
  }

  std::span<const uint8_t> bytes_;
  uint32_t bits_ = 0;
  bool bottom_up_ = true, has_runs_ = false;
  size_t first_pixel_ = 0, row_bytes_ = 0;
  int64_t next_row_ = 0;
  std::array<Mask, 4> masks_{};  // red, green, blue, alpha
  std::array<std::array<uint8_t, 3>, 256> palette_{};
  // Palette indices of a run-length encoded image, from the bottom row to the top row.
  std::vector<uint8_t> indices_;
};

}  // namespace

std::unique_ptr<PictureRows> open_bmp(std::span<const uint8_t> bytes, size_t file_bytes) {
  return std::make_unique<BmpRows>(bytes, file_bytes);
}

}  // namespace dtrain
