// Decodes image files to pixels of the size that a model needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// Ways to fit an image of another aspect ratio to the requested size.
enum class Resize {
  stretch,  // scales each axis by its own factor
  crop,     // keeps the central part with the requested aspect ratio
  pad,      // keeps the whole image and fills the rest with PictureForm::fill
};

/// The requested form of a decoded image: [height, width, channels] bytes.
struct PictureForm {
  int64_t height = 0, width = 0;
  int channels = 3;  // 1 (grayscale), 3 (RGB) or 4 (RGB and alpha)
  Resize resize = Resize::stretch;
  /// Whether the pixels are values that must not be blended: the nearest pixel is taken instead of a mean.
  /// With one channel, the pixels are the values of a PNG as stored: palette indices or gray levels of at
  /// most 8 bits.
  bool is_mask = false;
  uint32_t fill = 0;  // color around a padded image, 0xrrggbb; with one channel, the gray level

  size_t bytes() const { return static_cast<size_t>(height * width * channels); }
};

/// Decodes a JPEG, PNG or BMP to form.bytes() bytes: turned according to EXIF, 16 bits reduced to 8, alpha
/// dropped or made opaque, resized bilinearly with antialiasing (a mask: by nearest neighbor). The result is
/// bitwise reproducible on every machine. Throws UserError ("expected ..., found ...", without a path) if the
/// bytes are not a complete image, and for a mask that is a JPEG or, with one channel, has no stored values.
void decode_picture(std::span<const uint8_t> file, const PictureForm& form, uint8_t* dst);

/// Returns true if a file with this start is a JPEG, PNG or BMP, or an image of another known format (GIF,
/// WebP, ...), which decode_picture() then names in its error. Needs at least 18 bytes.
bool is_picture_file(std::span<const uint8_t> start);

/// Information from an image's header; the size is that of the displayed image, turned according to EXIF.
struct PictureHeader {
  int64_t height = 0, width = 0;
  bool grey = false;
  bool exact = true;  // whether decoding returns the values that were encoded; false for a JPEG
};

/// Reads the header of a file of `file_bytes` bytes that starts with `start`. Throws the same errors as
/// decode_picture() does for the header. Also throws if `start` is too short for the header: retry with more
/// bytes.
PictureHeader read_picture_header(std::span<const uint8_t> start, size_t file_bytes);

}  // namespace dtrain
