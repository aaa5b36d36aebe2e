// Decoders that return the rows of an image from top to bottom.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace dtrain {

/// The maximum number of pixels in an image (Pillow's limit): larger images are considered decompression
/// bombs.
constexpr int64_t kMostPixels = 178'956'970;

/// Decodes one image row by row. A row has width() * channels() bytes. The constructor gets the bytes of the
/// file, which must stay alive and unchanged. No memory for pixels is allocated before start(). Every
/// function throws UserError (without a path) if the bytes are invalid.
class PictureRows {
 public:
  virtual ~PictureRows() = default;
  /// Return the width and the height of the stored image from the header, before the EXIF orientation is
  /// applied.
  int64_t full_width() const { return full_width_; }
  int64_t full_height() const { return full_height_; }
  /// Returns the EXIF orientation, from 1 to 8; 1 means that the image is displayed as it is stored.
  int orientation() const { return orientation_; }
  /// Returns true if the image is stored without colors.
  bool is_gray() const { return gray_; }
  /// Returns true if the values have 16 bits. start() keeps only their high bytes.
  bool has_16_bits() const { return has_16_bits_; }

  /// Starts decoding. Must be called once before read(). `channels` is the requested number of channels. A
  /// decoder that can convert to this number does so; other decoders ignore it. `wanted_scale` is the
  /// requested size divided by the size of the stored image (at most 1); decoders that can downscale while
  /// decoding may do a part of the downscaling.
  virtual void start(int channels, double wanted_scale) = 0;
  /// Starts decoding like start(), but without conversions: each pixel is read as the one value that is
  /// stored for it, a palette index or a gray level of at most 8 bits. Throws UserError if the file does not
  /// contain one value per pixel. Must not be called if has_16_bits() is true.
  virtual void start_as_stored();
  /// Return the size of the image that read() returns, the number of its channels (1: grayscale, 2: grayscale
  /// and alpha, 3: RGB, 4: RGBA), and its size relative to the stored image (1 if it is not downscaled).
  /// Valid after start().
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int channels() const { return channels_; }
  double scale() const { return scale_; }
  /// Decodes the next row and writes it to `row`. May be called at most height() times.
  virtual void read(uint8_t* row) = 0;
  /// Checks the rest of the file. Must be called after the last row.
  virtual void finish() {}

 protected:
  /// Sets the size that the header contains. Throws UserError if the size is zero or exceeds kMostPixels.
  /// Also throws UserError if a file of `file_bytes` bytes cannot contain this many pixels, at
  /// `most_pixels_a_byte` pixels per byte.
  void set_full_size(int64_t width, int64_t height, size_t file_bytes, int64_t most_pixels_a_byte);

  int orientation_ = 1;
  bool gray_ = false, has_16_bits_ = false;
  int64_t width_ = 0, height_ = 0;
  int channels_ = 0;
  double scale_ = 1;

 private:
  int64_t full_width_ = 0, full_height_ = 0;
};

enum class PictureFormat { none, jpeg, png, bmp };

/// Detects the format of a file from its first bytes. The first two bytes of a BMP can also be the beginning
/// of a text ("BMI,age"), so the length of a BMP's second header must also be valid.
PictureFormat picture_format(std::span<const uint8_t> start);

/// Returns true if a file with these first bytes has an image format that is recognized but cannot be
/// decoded: GIF, WebP, TIFF, ICO, HEIC and similar formats.
bool is_unread_format(std::span<const uint8_t> start);

// The decoders of the formats. `file_bytes` is the size of the file. If only the header is needed, `bytes`
// may be the first part of the file.
std::unique_ptr<PictureRows> open_jpeg(std::span<const uint8_t> bytes, size_t file_bytes);
std::unique_ptr<PictureRows> open_png(std::span<const uint8_t> bytes, size_t file_bytes);
std::unique_ptr<PictureRows> open_bmp(std::span<const uint8_t> bytes, size_t file_bytes);

/// Opens an image with the decoder for its picture_format(). Throws UserError if there is no decoder. If the
/// file has another known image format (GIF, WebP, ...), the message names the format.
std::unique_ptr<PictureRows> open_picture(std::span<const uint8_t> bytes, size_t file_bytes);

}  // namespace dtrain
