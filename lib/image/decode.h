// From the bytes of a picture's file to pixels of the size that a model wants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// How a picture of another shape comes to the wanted one.
enum class Resize {
  stretch,  // both axes, each by its own factor
  crop,     // the middle of it that has the wanted shape
  pad,      // all of it, black beside it
};

/// The pixels that are wanted of a picture: [height, width, channels] bytes.
struct PictureForm {
  int64_t height = 0, width = 0;
  int channels = 3;  // 1 (grey), 3 (RGB) or 4 (RGB and alpha)
  Resize resize = Resize::stretch;

  size_t bytes() const { return static_cast<size_t>(height * width * channels); }
};

/// Decodes a JPEG, PNG or BMP to form.bytes() bytes: turned as EXIF says, 16 bits to 8, alpha dropped or made
/// opaque, resized bilinearly with antialiasing. The same bits wherever and whenever it is done. Throws
/// UserError ("expected ..., found ...", without a path) where the bytes are no whole picture.
void decode_picture(std::span<const uint8_t> file, const PictureForm& form, uint8_t* dst);

/// Whether a file that begins so is a JPEG, PNG or BMP, or of another format of pictures, whose name
/// decode_picture() then says (GIF, WebP, ...). At least 18 bytes are needed for that.
bool is_picture_file(std::span<const uint8_t> start);

/// What the header of a picture says, as it is to be shown: turned as EXIF says.
struct PictureHeader {
  int64_t height = 0, width = 0;
  bool grey = false;
};

/// Of a file of `file_bytes` bytes, of which `start` is the beginning. Throws what decode_picture() would
/// throw for the header. A `start` that is too short for it is an error, too: try again with more.
PictureHeader read_picture_header(std::span<const uint8_t> start, size_t file_bytes);

}  // namespace dtrain
