#include "image/picture_rows.h"

#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns true if the file header of 14 bytes is followed by a second header. The second header begins with
/// its own length. Only the length of the OS/2 header and the possible lengths of Windows headers are
/// accepted.
bool has_bmp_header(std::span<const uint8_t> start) {
  if (start.size() < 18) return false;
  const uint32_t length =
      start[14] | uint32_t{start[15]} << 8 | uint32_t{start[16]} << 16 | uint32_t{start[17]} << 24;
  return length == 12 || (length >= 40 && length <= 1024);
}

/// Returns the name of an image format that is recognized but cannot be decoded. Returns "" for all other
/// files.
std::string_view name_of_unread_format(std::string_view start) {
  if (start.starts_with("GIF87a") || start.starts_with("GIF89a")) return "a GIF";
  if (start.starts_with("RIFF") && start.size() >= 12 && start.substr(8, 4) == "WEBP") return "a WebP image";
  if (start.starts_with(std::string_view("II*\0", 4)) || start.starts_with(std::string_view("MM\0*", 4)))
    return "a TIFF";
  // The header of an icon file ends with the number of its images, which is not 0. IDX files begin in the
  // same way, but their third byte is at least 8, so they do not match.
  if (start.size() >= 6 && start.starts_with(std::string_view("\0\0\1\0", 4)) && (start[4] | start[5]) != 0)
    return "an icon (.ico)";
  // The file begins with the length of a box, whose first byte is 0. Text files do not begin with a 0 byte.
  if (start.size() >= 12 && start[0] == '\0' && start.substr(4, 4) == "ftyp")
    return "a HEIC, AVIF or video file";
  return "";
}

/// Returns a description of a file's format for messages, such as "an HDF5 file". The format is determined
/// from the first bytes of the file.
std::string_view name_of_format(std::string_view start) {
  if (start.empty()) return "an empty file";
  if (const std::string_view unread = name_of_unread_format(start); !unread.empty()) return unread;
  if (start.starts_with("\x89HDF")) return "an HDF5 file";
  if (start.starts_with("%PDF")) return "a PDF";
  if (start.starts_with("<svg") || start.starts_with("<?xml")) return "an SVG or XML file";
  return "a file that is not an image";
}

}  // namespace

void PictureRows::set_full_size(int64_t width, int64_t height, size_t file_bytes,
                                int64_t most_pixels_a_byte) {
  if (width < 1 || height < 1)
    throw UserError(fmt::format("expected at least one pixel, found {} x {} pixels", width, height));
  if (width > kMostPixels / height)
    throw UserError(fmt::format("expected an image of at most {} pixels, but found {} x {} pixels",
                                kMostPixels, width, height));
  if (width * height / most_pixels_a_byte > static_cast<int64_t>(file_bytes))
    throw UserError(
        fmt::format("expected {} x {} pixels as in the header, but the file has only {} bytes, too few for "
                    "this number of pixels",
                    width, height, file_bytes));
  full_width_ = width;
  full_height_ = height;
}

void PictureRows::start_as_stored() {
  throw UserError(
      "expected a PNG with one value per pixel, but this image has another format; convert masks of class "
      "numbers to PNG");
}

PictureFormat picture_format(std::span<const uint8_t> start) {
  const std::string_view text = text_of(start);
  if (text.starts_with("\xff\xd8\xff")) return PictureFormat::jpeg;
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return PictureFormat::png;
  return text.starts_with("BM") && has_bmp_header(start) ? PictureFormat::bmp : PictureFormat::none;
}

bool is_unread_format(std::span<const uint8_t> start) {
  return !name_of_unread_format(text_of(start)).empty();
}

std::unique_ptr<PictureRows> open_picture(std::span<const uint8_t> bytes, size_t file_bytes) {
  switch (picture_format(bytes)) {
    case PictureFormat::jpeg:
      return open_jpeg(bytes, file_bytes);
    case PictureFormat::png:
      return open_png(bytes, file_bytes);
    case PictureFormat::bmp:
      return open_bmp(bytes, file_bytes);
    case PictureFormat::none:
      break;
  }
  throw UserError(fmt::format("expected a JPEG, PNG or BMP, found {}", name_of_format(text_of(bytes))));
}

}  // namespace dtrain
