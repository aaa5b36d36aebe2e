// A picture in a file of some format, as rows of bytes from top to bottom.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace dtrain {

/// The pixels that a picture may have, Pillow's limit: what claims more is taken for an attack on memory.
constexpr int64_t kMostPixels = 178'956'970;

/// Gives the rows of one picture, each of width() * channels() bytes. Made from the file's bytes, which stay
/// alive and as they are. Nothing is allocated for pixels before start(). Every function throws UserError
/// ("expected ..., found ...", without a path) where the bytes are not what they should be.
class PictureRows {
 public:
  virtual ~PictureRows() = default;
  /// What the header says: the size as stored, before any orientation.
  int64_t full_width() const { return full_width_; }
  int64_t full_height() const { return full_height_; }
  /// How the picture is to be turned, as EXIF counts: 1 (as it is) to 8.
  int orientation() const { return orientation_; }
  /// Whether it is stored without colours.
  bool is_grey() const { return grey_; }

  /// Called once before read(). `channels` are those that are wanted: a format that can give them itself
  /// does. `wanted_scale` is the new size over the old one (at most 1): a format that can shrink while it
  /// decodes may do a part of that.
  virtual void start(int channels, double wanted_scale) = 0;
  /// From start() on: the size and the channels of the rows (1 grey, 2 grey and alpha, 3 RGB, 4 RGBA), and
  /// their size over the picture's, 1 where it was not shrunk.
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int channels() const { return channels_; }
  double scale() const { return scale_; }
  /// Writes the next row. Called height() times at most.
  virtual void read(uint8_t* row) = 0;
  /// Called after the last row: looks at what the file has after its pixels.
  virtual void finish() {}

 protected:
  /// What the header says. Throws UserError for no pixels, for more than kMostPixels, and for more than
  /// `file_bytes` can hold at `most_pixels_a_byte`.
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

/// The format that the first bytes of a file say. Text may begin with a BMP's two letters ("BMI,age"): what
/// its header begins with has to follow.
PictureFormat picture_format(std::span<const uint8_t> start);

/// Whether the first bytes of a file say a format of pictures that is known but not read: GIF, WebP, TIFF,
/// ICO, HEIC and its kin.
bool is_unread_format(std::span<const uint8_t> start);

// One for each format. `bytes` may be the beginning of a file of `file_bytes` bytes, where only the header is
// wanted.
std::unique_ptr<PictureRows> open_jpeg(std::span<const uint8_t> bytes, size_t file_bytes);
std::unique_ptr<PictureRows> open_png(std::span<const uint8_t> bytes, size_t file_bytes);
std::unique_ptr<PictureRows> open_bmp(std::span<const uint8_t> bytes, size_t file_bytes);

/// Opens a picture of its picture_format(). Throws UserError for any other file; the message
/// names formats that are known but not read (GIF, WebP, ...).
std::unique_ptr<PictureRows> open_picture(std::span<const uint8_t> bytes, size_t file_bytes);

}  // namespace dtrain
