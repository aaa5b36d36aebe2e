// Pictures' files for tests, encoded by libjpeg and libpng.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::test {

using Bytes = std::vector<uint8_t>;

/// Pixels as they are to be stored: [height, width, channels].
struct Pixels {
  int64_t height = 0, width = 0;
  int channels = 3;
  Bytes bytes;

  uint8_t& at(int64_t y, int64_t x, int c) {
    return bytes[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

/// Smooth colours that differ from place to place and from picture to picture.
Pixels gradient(int64_t height, int64_t width, int channels, int number = 0);

struct JpegOptions {
  int quality = 95;
  bool progressive = false;
  int orientation = 0;   // 0: no EXIF data
  std::string xmp = {};  // a packet of XMP
  bool adobe = false;    // with Adobe's marker: four channels are ink's absence
};
/// One channel is grey, three are RGB, four CMYK. Colours are not subsampled.
Bytes jpeg_of(const Pixels& pixels, const JpegOptions& options = {});

struct PngOptions {
  int bits = 8;  // of a channel: 8, or 16 (each byte is the high one of two), or 1 and 4 for grey
  bool interlaced = false;
  Bytes palette = {};  // RGB after RGB: the pixels of one channel are indices
  Bytes palette_alpha = {};
};
/// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
Bytes png_of(const Pixels& pixels, const PngOptions& options = {});

/// 24 bits a pixel, from bottom to top; 32 with four channels (the fourth byte means nothing there).
Bytes bmp_of(const Pixels& pixels);

/// The chunk of a PNG: length, type, data, checksum.
Bytes png_chunk(const std::string& type, const Bytes& data);

}  // namespace dtrain::test
