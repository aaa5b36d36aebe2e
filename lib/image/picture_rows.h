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

/// Decodes one image row by row; a row has width() * channels() bytes. Constructed from the file's bytes,
/// which must stay alive and unchanged. Allocates no memory for pixels before start(). Every function throws
/// UserError ("expected ..., found ...", without a path) if the bytes are invalid.
class PictureRows {
 public:
  virtual ~PictureRows() = default;
  /// Returns the width from the header, as stored: before the orientation is applied. full_height() returns
  /// the height.
  int64_t full_width() const { return full_width_; }
  int64_t full_height() const { return full_height_; }
  /// Returns the EXIF orientation: 1 (not turned) to 8.
  int orientation() const { return orientation_; }
  /// Returns true if the image is stored without colors.
  bool is_grey() const { return grey_; }

  /// Starts decoding; called once before read(). Formats that can convert to the requested number of
  /// `channels` do so. `wanted_scale` is the new size divided by the old size (at most 1); formats that can
  /// downscale while decoding may do part of the downscaling.
  virtual void start(int channels, double wanted_scale) = 0;
  /// Starts decoding instead of start(), to read one value per pixel as it is stored: the palette index or
  /// the gray level of at most 8 bits. Throws UserError if the image has no such values.
  virtual void start_as_stored();
  /// Return the size and the channels of the rows (1 grayscale, 2 grayscale and alpha, 3 RGB, 4 RGBA), and
  /// their size relative to the stored image (1 if not downscaled). Valid after start().
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int channels() const { return channels_; }
  double scale() const { return scale_; }
  /// Writes the next row to `row`. Called at most height() times.
  virtual void read(uint8_t* row) = 0;
  /// Checks the rest of the file. Called after the last row.
  virtual void finish() {}

 protected:
  /// Sets the size from the header. Throws UserError if the size is zero, exceeds kMostPixels, or is more
  /// than `file_bytes` can encode at `most_pixels_a_byte` pixels per byte.
  void set_full_size(int64_t width, int64_t height, size_t file_bytes, int64_t most_pixels_a_byte);

  int orientation_ = 1;
  bool grey_ = false;
  int64_t width_ = 0, height_ = 0;
  int channels_ = 0;
  double scale_ = 1;

 private:
  int64_t full_width_ = 0, full_height_ = 0;
};

enum class PictureFormat { none, jpeg, png, bmp };

/// Detects the format from the first bytes of a file. Text may start with BMP's two letters ("BMI,age"), so
/// the start of a BMP header must follow.
PictureFormat picture_format(std::span<const uint8_t> start);

/// Returns true if a file with this start has a recognized but unsupported image format: GIF, WebP, TIFF,
/// ICO, HEIC and similar.
bool is_unread_format(std::span<const uint8_t> start);

// Decoders of each format. If only the header is needed, `bytes` may be the beginning of a file of
// `file_bytes` bytes.
std::unique_ptr<PictureRows> open_jpeg(std::span<const uint8_t> bytes, size_t file_bytes);
std::unique_ptr<PictureRows> open_png(std::span<const uint8_t> bytes, size_t file_bytes);
std::unique_ptr<PictureRows> open_bmp(std::span<const uint8_t> bytes, size_t file_bytes);

/// Opens an image with the decoder of its picture_format(). Throws UserError for any other file; the message
/// names recognized but unsupported formats (GIF, WebP, ...).
std::unique_ptr<PictureRows> open_picture(std::span<const uint8_t> bytes, size_t file_bytes);

}  // namespace dtrain
