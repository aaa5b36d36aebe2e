#include "support/image_files.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <jpeglib.h>
#include <png.h>
#include <stdexcept>

namespace dtrain::test {

Pixels gradient(int64_t height, int64_t width, int channels, int number) {
  Pixels pixels{height, width, channels, {}};
  pixels.bytes.resize(static_cast<size_t>(height * width * channels));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        const double wave = std::sin(0.05 * static_cast<double>(x + 13 * c + 7 * number)) *
                            std::cos(0.04 * static_cast<double>(y + 29 * c + 3 * number));
        pixels.at(y, x, c) = static_cast<uint8_t>(std::lround(127.5 + 110 * wave));
      }
  return pixels;
}

Bytes jpeg_of(const Pixels& pixels, const JpegOptions& options) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  // The default handler exits on errors, but the data encoded here are valid.
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &memory, &size);
  encoder.image_width = static_cast<JDIMENSION>(pixels.width);
  encoder.image_height = static_cast<JDIMENSION>(pixels.height);
  encoder.input_components = pixels.channels;
  encoder.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : pixels.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, options.quality, TRUE);
  encoder.comp_info[0].h_samp_factor = encoder.comp_info[0].v_samp_factor = 1;
  if (pixels.channels == 4) encoder.write_Adobe_marker = options.adobe ? TRUE : FALSE;
  if (options.progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  if (options.orientation > 0) {
    Bytes exif{'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0};
    exif.push_back(static_cast<uint8_t>(options.orientation));
    exif.insert(exif.end(), {0, 0, 0, 0, 0, 0});
    jpeg_write_marker(&encoder, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
  }
  if (!options.xmp.empty()) {
    const std::string marker = std::string("http://ns.adobe.com/xap/1.0/") + '\0' + options.xmp;
    jpeg_write_marker(&encoder, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(marker.data()),
                      static_cast<unsigned>(marker.size()));
  }
  for (int64_t y = 0; y < pixels.height; ++y) {
    auto* row = const_cast<JSAMPROW>(pixels.bytes.data() + y * pixels.width * pixels.channels);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  Bytes bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

Bytes png_of(const Pixels& pixels, const PngOptions& options) {
  Bytes bytes;
  png_structp png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, nullptr, [](png_structp, png_const_charp text) { throw std::logic_error(text); },
      nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, size_t count) {
        auto* out = static_cast<Bytes*>(png_get_io_ptr(p));
        out->insert(out->end(), data, data + count);
      },
      [](png_structp) {});
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  const int type = options.palette.empty() ? kTypes[pixels.channels - 1] : PNG_COLOR_TYPE_PALETTE;
  png_set_IHDR(png, info, static_cast<png_uint_32>(pixels.width), static_cast<png_uint_32>(pixels.height),
               options.bits, type, options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!options.palette.empty()) {
    std::vector<png_color> colours;
    for (size_t i = 0; i < options.palette.size(); i += 3)
      colours.push_back({options.palette[i], options.palette[i + 1], options.palette[i + 2]});
    png_set_PLTE(png, info, colours.data(), static_cast<int>(colours.size()));
    if (!options.palette_alpha.empty())
      png_set_tRNS(png, info, options.palette_alpha.data(), static_cast<int>(options.palette_alpha.size()),
                   nullptr);
  }
  png_write_info(png, info);
  if (options.bits < 8) png_set_packing(png);
  const auto row_bytes = static_cast<size_t>(pixels.width * pixels.channels);
  std::vector<Bytes> rows;
  for (size_t y = 0; y < static_cast<size_t>(pixels.height); ++y) {
    rows.emplace_back();
    for (size_t i = 0; i < row_bytes; ++i) {
      rows.back().push_back(pixels.bytes[y * row_bytes + i]);
      if (options.bits == 16) rows.back().push_back(static_cast<uint8_t>(i * 37));
    }
  }
  std::vector<png_bytep> starts;
  for (Bytes& row : rows) starts.push_back(row.data());
  png_write_image(png, starts.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

namespace {

void append_little(Bytes& bytes, uint32_t value, int size) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

}  // namespace

Bytes bmp_of(const Pixels& pixels) {
  const auto channels = static_cast<size_t>(pixels.channels), width = static_cast<size_t>(pixels.width);
  const size_t row_bytes = (width * channels + 3) / 4 * 4;
  Bytes bytes{'B', 'M'};
  append_little(bytes, static_cast<uint32_t>(54 + row_bytes * static_cast<size_t>(pixels.height)), 4);
  append_little(bytes, 0, 4);
  append_little(bytes, 54, 4);
  append_little(bytes, 40, 4);
  append_little(bytes, static_cast<uint32_t>(pixels.width), 4);
  append_little(bytes, static_cast<uint32_t>(pixels.height), 4);
  append_little(bytes, 1, 2);
  append_little(bytes, static_cast<uint32_t>(8 * channels), 2);
  for (int i = 0; i < 6; ++i) append_little(bytes, 0, 4);
  for (size_t y = static_cast<size_t>(pixels.height); y-- > 0;) {
    const uint8_t* row = pixels.bytes.data() + y * width * channels;
    for (size_t x = 0; x < width; ++x, row += channels) {
      for (const size_t c : {2, 1, 0}) bytes.push_back(row[c]);
      if (channels == 4) bytes.push_back(row[3]);
    }
    bytes.resize(bytes.size() + row_bytes - width * channels);
  }
  return bytes;
}

Bytes png_chunk(const std::string& type, const Bytes& data) {
  Bytes bytes(8 + data.size());
  for (size_t i = 0; i < 4; ++i) bytes[i] = static_cast<uint8_t>(data.size() >> (24 - 8 * i));
  std::copy_n(type.begin(), 4, bytes.begin() + 4);
  std::copy(data.begin(), data.end(), bytes.begin() + 8);
  uint32_t sum = 0xffffffffu;
  for (size_t i = 4; i < bytes.size(); ++i) {
    sum ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
  }
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(~sum >> shift));
  return bytes;
}

}  // namespace dtrain::test
