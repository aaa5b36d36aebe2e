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
/// Encodes a JPEG without chroma subsampling. Pixels with one channel are encoded as grayscale, with three
/// channels as RGB, and with four channels as CMYK.
Bytes jpeg_of(const Pixels& pixels, const JpegOptions& options = {});

struct PngOptions {
  // Bits per channel: 8 or 16, or 1 or 4 for grayscale. For 16 bits, each byte of the pixels is the high
  // byte.
  int bits = 8;
  bool interlaced = false;
  // RGB triples; if not empty, the pixels have one channel, whose values are indices of the palette.
  Bytes palette = {};
  Bytes palette_alpha = {};
};
/// Encodes a PNG. Pixels with one channel are encoded as grayscale, with two as grayscale and alpha, with
/// three as RGB, and with four as RGBA.
Bytes png_of(const Pixels& pixels, const PngOptions& options = {});

/// Encodes a BMP, whose rows are stored from bottom to top. Pixels with four channels take 32 bits each, of
/// which the last 8 are unused; other pixels take 24 bits.
Bytes bmp_of(const Pixels& pixels);

/// Returns a PNG chunk: length, type, data, checksum.
Bytes png_chunk(const std::string& type, const Bytes& data);

}  // namespace dtrain::test
