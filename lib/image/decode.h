// Decodes image files and resizes the images to the size that a model needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// Methods that fit an image to a requested size if the image has a different aspect ratio.
enum class Resize {
  stretch,  // scales each axis by its own factor
  crop,     // keeps the central part with the requested aspect ratio
  pad,      // keeps the whole image and fills the rest with PictureForm::fill
};

/// The requested size and format of a decoded image. The result has the shape [height, width, channels], with
/// one byte per value.
struct PictureForm {
  int64_t height = 0, width = 0;
  int channels = 3;  // 1 (grayscale), 3 (RGB) or 4 (RGB and alpha)
  Resize resize = Resize::stretch;
  /// Whether the image is a mask. The values of a mask must not be blended, so it is resized with
  /// nearest-neighbor interpolation, which only copies values. If a mask has one channel, its values are
  /// taken from a PNG without conversion: they are palette indices, or gray levels of at most 8 bits.
  bool is_mask = false;
  // Color of the border around a padded image, as 0xrrggbb; with one channel, the gray level.
  uint32_t fill = 0;

  size_t bytes() const { return static_cast<size_t>(height * width * channels); }
};

/// Decodes a JPEG, PNG or BMP to form.bytes() bytes. The image is rotated and mirrored as its EXIF
/// orientation requires, 16-bit values are reduced to 8 bits, and an alpha channel is removed or added as the
/// form requires. The image is resized bilinearly with antialiasing, or with nearest-neighbor interpolation
/// if it is a mask. The result is bitwise identical on every machine.
/// Throws UserError (without a path) if the bytes are not a complete image. For a mask, also throws UserError
/// if it is a JPEG, if its values have 16 bits, or if it has one channel but the file does not contain one
/// value per pixel.
void decode_picture(std::span<const uint8_t> file, const PictureForm& form, uint8_t* dst);

/// Returns true if a file with these first bytes is a JPEG, a PNG or a BMP. Also returns true for other known
/// image formats (GIF, WebP, ...), so that decode_picture() can name the format in its error message. `start`
/// must have at least 18 bytes.
bool is_picture_file(std::span<const uint8_t> start);

/// Properties of an image that are known from its header. The size is that of the displayed image, which is
/// rotated as its EXIF orientation requires.
struct PictureHeader {
  int64_t height = 0, width = 0;
  bool gray = false;
  bool exact = true;         // whether decoding returns exactly the values that were encoded; false for JPEGs
  bool has_16_bits = false;  // whether the values have 16 bits; decoding then keeps the high bytes
};

/// Reads the header of a file. `start` contains the first bytes of the file, and `file_bytes` is its size.
/// Throws the errors that decode_picture() throws for an invalid header. Also throws if `start` ends before
/// the end of the header; the caller can then retry with more bytes.
PictureHeader read_picture_header(std::span<const uint8_t> start, size_t file_bytes);

}  // namespace dtrain
