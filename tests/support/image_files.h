// Image files for tests, encoded with libjpeg and libpng.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::test {

using Bytes = std::vector<uint8_t>;

/// Pixels in stored orientation: [height, width, channels].
struct Pixels {
  int64_t height = 0, width = 0;
  int channels = 3;
  Bytes bytes;

  uint8_t& at(int64_t y, int64_t x, int c) {
    return bytes[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

/// Returns smooth colors that differ within an image and between images.
Pixels gradient(int64_t height, int64_t width, int channels, int number = 0);

struct JpegOptions {
  int quality = 95;
  bool progressive = false;
  int orientation = 0;   // 0: no EXIF data
  std::string xmp = {};  // an XMP packet; "" for none
  bool adobe = false;    // writes Adobe's marker, which says that four channels are inverted ink values
};
/// Encodes one channel as grayscale, three as RGB, four as CMYK, without chroma subsampling.
Bytes jpeg_of(const Pixels& pixels, const JpegOptions& options = {});

struct PngOptions {
  int bits = 8;  // bits per channel: 8, 16 (each byte becomes the high byte of two), or 1 or 4 for grayscale
  bool interlaced = false;
  Bytes palette = {};  // RGB triples; the pixels, with one channel, are indices
  Bytes palette_alpha = {};
};
/// Encodes one channel as grayscale, two as grayscale and alpha, three as RGB, four as RGBA.
Bytes png_of(const Pixels& pixels, const PngOptions& options = {});

/// Encodes 24 bits per pixel, from bottom to top; 32 bits with four channels (the fourth byte is unused).
Bytes bmp_of(const Pixels& pixels);

/// Returns a PNG chunk: length, type, data, checksum.
Bytes png_chunk(const std::string& type, const Bytes& data);

}  // namespace dtrain::test
