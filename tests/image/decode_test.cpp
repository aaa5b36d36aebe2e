// Tests the decoding of images in every supported format.
#include "image/decode.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/errors.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

/// Decodes an image at its original size.
Pixels decoded(const Bytes& file, int64_t height, int64_t width, int channels = 3,
               Resize resize = Resize::stretch) {
  Pixels pixels{height, width, channels, {}};
  pixels.bytes.assign(static_cast<size_t>(height * width * channels), 77);
  decode_picture(file, {height, width, channels, resize}, pixels.bytes.data());
  return pixels;
}

int most_difference(const Bytes& a, const Bytes& b) {
  REQUIRE(a.size() == b.size());
  int most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Returns the pixels as an image with this EXIF orientation stores them. Each case of the switch follows the
/// text of the EXIF standard.
Pixels stored_for(Pixels& seen, int orientation) {
  const bool turned = orientation >= 5;
  Pixels stored{turned ? seen.width : seen.height, turned ? seen.height : seen.width, seen.channels, {}};
  stored.bytes.resize(seen.bytes.size());
  const int64_t h = seen.height, w = seen.width;
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x)
      for (int c = 0; c < seen.channels; ++c) {
        const uint8_t value = seen.at(y, x, c);
        switch (orientation) {
          case 1:
            stored.at(y, x, c) = value;
            break;
          case 2:
            stored.at(y, w - 1 - x, c) = value;
            break;
          case 3:
            stored.at(h - 1 - y, w - 1 - x, c) = value;
            break;
          case 4:
            stored.at(h - 1 - y, x, c) = value;
            break;
          case 5:
            stored.at(x, y, c) = value;
            break;
          case 6:
            stored.at(w - 1 - x, y, c) = value;
            break;
          case 7:
            stored.at(w - 1 - x, h - 1 - y, c) = value;
            break;
          case 8:
            stored.at(x, h - 1 - y, c) = value;
            break;
        }
      }
  return stored;
}

}  // namespace

TEST_CASE("lossless images are decoded exactly") {
  for (const int channels : {1, 3, 4}) {
    CAPTURE(channels);
    const Pixels pixels = gradient(37, 53, channels);
    CHECK(decoded(png_of(pixels), 37, 53, channels).bytes == pixels.bytes);
    CHECK(decoded(png_of(pixels, {.interlaced = true}), 37, 53, channels).bytes == pixels.bytes);
    CHECK(decoded(png_of(pixels, {.bits = 16}), 37, 53, channels).bytes == pixels.bytes);
  }
  const Pixels colours = gradient(37, 53, 3);
  CHECK(decoded(bmp_of(colours), 37, 53).bytes == colours.bytes);
}

TEST_CASE("a BMP is recognized with any reserved bytes, and a text is not a BMP") {
  const Pixels pixels = gradient(9, 7, 3);
  Bytes file = bmp_of(pixels);
  for (size_t i = 6; i < 10; ++i) file[i] = 0xab;
  CHECK(is_picture_file(file));
  CHECK(decoded(file, 9, 7).bytes == pixels.bytes);
  for (const std::string text : {"BMI,age,height,weight\n21,30,1.8,70\n", "BM"}) {
    const Bytes bytes(text.begin(), text.end());
    CHECK_FALSE(is_picture_file(bytes));
    CHECK_THROWS_WITH_AS(decoded(bytes, 9, 7),
                         "expected a JPEG, PNG or BMP, found a file that is not an image", UserError);
  }
}

TEST_CASE("unsupported image formats are recognized and named") {
  const std::string size("\0\0\0\x1c", 4);
  for (const auto& [start, kind] : {std::pair<std::string, std::string>{"GIF89a", "a GIF"},
                                    {"RIFF" + size + "WEBPVP8 ", "a WebP image"},
                                    {std::string("II*\0", 4), "a TIFF"},
                                    {std::string("\0\0\1\0\1\0\x20\x20", 8), "an icon (.ico)"},
                                    {size + "ftypheic", "a HEIC, AVIF or video file"}}) {
    const std::string& name = kind;
    CAPTURE(name);
    const std::string text = start + std::string(20, '\0');
    const Bytes bytes(text.begin(), text.end());
    CHECK(is_picture_file(bytes));
    CHECK_THROWS_WITH_AS(decoded(bytes, 9, 7), ("expected a JPEG, PNG or BMP, found " + name).c_str(),
                         UserError);
  }
  for (const std::string text :
       {"GIF8 files,size,owner\n", "age,ftyp,height\n1,2,3\n", "RIFF,note,WEBP,more\n"})
    CHECK_FALSE(is_picture_file(Bytes(text.begin(), text.end())));
}

TEST_CASE("a JPEG is decoded up to the loss of its compression") {
  for (const bool progressive : {false, true})
    for (const int channels : {1, 3}) {
      CAPTURE(progressive);
      CAPTURE(channels);
      const Pixels pixels = gradient(45, 61, channels);
      const Pixels back = decoded(jpeg_of(pixels, {.progressive = progressive}), 45, 61, channels);
      CHECK(most_difference(back.bytes, pixels.bytes) <= 8);
    }
}

TEST_CASE("channels are added and dropped as in Keras") {
  Pixels gray = gradient(8, 9, 1), both{8, 9, 2, {}}, opaque{8, 9, 4, {}}, three{8, 9, 3, {}};
  for (const uint8_t value : gray.bytes) {
    both.bytes.insert(both.bytes.end(), {value, 9});
    three.bytes.insert(three.bytes.end(), {value, value, value});
    opaque.bytes.insert(opaque.bytes.end(), {value, value, value, 255});
  }
  CHECK(decoded(png_of(gray), 8, 9, 3).bytes == three.bytes);
  CHECK(decoded(png_of(gray), 8, 9, 4).bytes == opaque.bytes);
  CHECK(decoded(png_of(both), 8, 9, 1).bytes == gray.bytes);
  CHECK(decoded(png_of(both), 8, 9, 3).bytes == three.bytes);  // transparent pixels keep their color
  CHECK(decoded(png_of(three), 8, 9, 1).bytes == gray.bytes);
  CHECK(decoded(bmp_of(opaque), 8, 9, 3).bytes == three.bytes);

  Pixels rgb{1, 3, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}};
  CHECK(decoded(png_of(rgb), 1, 3, 1).bytes == Bytes{76, 150, 29});  // Pillow's "L"
}

TEST_CASE("palettes and grayscale of few bits are decoded") {
  const Pixels indices{1, 4, 1, {0, 1, 2, 1}};
  PngOptions options{.palette = {1, 2, 3, 40, 50, 60, 250, 251, 252}, .palette_alpha = {255, 7}};
  CHECK(decoded(png_of(indices, options), 1, 4, 3).bytes ==
        Bytes{1, 2, 3, 40, 50, 60, 250, 251, 252, 40, 50, 60});
  CHECK(decoded(png_of(indices, options), 1, 4, 4).bytes ==
        Bytes{1, 2, 3, 255, 40, 50, 60, 7, 250, 251, 252, 255, 40, 50, 60, 7});
  CHECK(decoded(png_of({1, 4, 1, {0, 1, 1, 0}}, {.bits = 1}), 1, 4, 1).bytes == Bytes{0, 255, 255, 0});
  CHECK(decoded(png_of({1, 3, 1, {0, 5, 15}}, {.bits = 4}), 1, 3, 1).bytes == Bytes{0, 85, 255});
}

TEST_CASE("CMYK is converted to RGB from normal and inverted ink values") {
  // 16x16 pixels of one color: cyan 255, magenta 128, yellow 0, black 51.
  Pixels ink{16, 16, 4, {}}, absence{16, 16, 4, {}};
  for (int i = 0; i < 256; ++i) {
    ink.bytes.insert(ink.bytes.end(), {255, 128, 0, 51});
    absence.bytes.insert(absence.bytes.end(), {0, 127, 255, 204});
  }
  Pixels expected{16, 16, 3, {}};
  for (int i = 0; i < 256; ++i) expected.bytes.insert(expected.bytes.end(), {0, 102, 204});
  CHECK(most_difference(decoded(jpeg_of(ink), 16, 16).bytes, expected.bytes) <= 2);
  CHECK(most_difference(decoded(jpeg_of(absence, {.adobe = true}), 16, 16).bytes, expected.bytes) <= 2);
}

TEST_CASE("images are rotated by their EXIF orientation before cropping and padding") {
  Pixels seen = gradient(48, 80, 3, 5);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const Pixels stored = stored_for(seen, orientation);
    const Bytes file = jpeg_of(stored, {.quality = 100, .orientation = orientation});
    CHECK(most_difference(decoded(file, 48, 80).bytes, seen.bytes) <= 6);
    for (const Resize resize : {Resize::stretch, Resize::crop, Resize::pad}) {
      CAPTURE(static_cast<int>(resize));
      const Bytes expected = decoded(png_of(seen), 31, 33, 3, resize).bytes;
      CHECK(most_difference(decoded(file, 31, 33, 3, resize).bytes, expected) <= 4);
    }
  }
}

TEST_CASE("XMP gives the orientation if EXIF does not") {
  Pixels seen = gradient(48, 80, 3, 5);
  for (const std::string xmp : {"<rdf:Description tiff:Orientation=\"6\" x=\"1\"/>",
                                "<tiff:Orientation>6</tiff:Orientation>", "<x tiff:Orientation = '6'/>"}) {
    CAPTURE(xmp);
    const Bytes file = jpeg_of(stored_for(seen, 6), {.quality = 100, .xmp = xmp});
    CHECK(most_difference(decoded(file, 48, 80).bytes, seen.bytes) <= 6);
    CHECK(read_picture_header(file, file.size()).height == 48);
  }
  const std::string six = "<x tiff:Orientation=\"6\"/>";
  const Bytes both = jpeg_of(stored_for(seen, 3), {.quality = 100, .orientation = 3, .xmp = six});
  CHECK(most_difference(decoded(both, 48, 80).bytes, seen.bytes) <= 6);
  for (const std::string xmp : {"<x tiff:Orientation=\"9\"/>", "<x tiff:Orientation=\"61\"/>",
                                "<x tiff:OrientationTag=\"6\"/>", "tiff:Orientation"}) {
    CAPTURE(xmp);
    CHECK(most_difference(decoded(jpeg_of(seen, {.quality = 100, .xmp = xmp}), 48, 80).bytes, seen.bytes) <=
          6);
  }
}

namespace {

/// Returns a BMP file with a palette of the grays 0, 1, 2, ... `offset` is the offset of the pixels that the
/// header states. If it is 0, the header states the real offset: the end of the palette.
Bytes indexed_bmp(int64_t height, int64_t width, int bits, int compression, const Bytes& data,
                  int offset = 0) {
  Bytes file{'B', 'M'};
  const auto append = [&](int64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  const int colours = 1 << bits, begin = 54 + 4 * colours;
  append(begin + static_cast<int64_t>(data.size()), 4);
  append(0, 4);
  append(offset > 0 ? offset : begin, 4);
  for (const int64_t value : {int64_t{40}, width, height}) append(value, 4);
  append(1, 2);
  append(bits, 2);
  append(compression, 4);
  append(static_cast<int64_t>(data.size()), 4);
  for (int i = 0; i < 4; ++i) append(0, 4);
  for (int i = 0; i < colours; ++i)
    file.insert(file.end(), {Bytes::value_type(i), Bytes::value_type(i), Bytes::value_type(i), 0});
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

std::string decode_error(const Bytes& file) {
  return error_of([&] { decoded(file, 3, 5, 1); });
}

}  // namespace

TEST_CASE("run-length encoded BMPs are decoded") {
  // From bottom to top: a run, literal indices (padded to 16 bits), a jump over two pixels, an end of row.
  const Bytes eight{5, 9, 0, 0, 0, 3, 1, 2, 3, 0, 2, 7, 0, 0, 0, 2, 2, 0, 3, 4, 0, 1};
  const Bytes expected{0, 0, 4, 4, 4, 1, 2, 3, 7, 7, 9, 9, 9, 9, 9};
  CHECK(decoded(indexed_bmp(3, 5, 8, 1, eight), 3, 5, 1).bytes == expected);
  const Bytes four{5, 0x99, 0, 0, 0, 3, 0x12, 0x30, 2, 0x77, 0, 0, 0, 2, 2, 0, 3, 0x45, 0, 1};
  CHECK(decoded(indexed_bmp(3, 5, 4, 2, four), 3, 5, 1).bytes ==
        Bytes{0, 0, 4, 5, 4, 1, 2, 3, 7, 7, 9, 9, 9, 9, 9});
  const Bytes late{9, 1, 0, 0, 5, 2, 0, 0, 5, 3};  // a run that exceeds its row, and no end marker
  CHECK(decoded(indexed_bmp(3, 5, 8, 1, late), 3, 5, 1).bytes ==
        Bytes{3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1});
  const Bytes ends{5, 1, 0, 0, 5, 2, 0, 0, 5, 3, 0, 0};  // ends of rows, and no end marker
  CHECK(decoded(indexed_bmp(3, 5, 8, 1, ends), 3, 5, 1).bytes ==
        Bytes{3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1});
  for (size_t length = 0; length + 2 < eight.size(); ++length) {
    CAPTURE(length);
    const Bytes cut(eight.begin(), eight.begin() + static_cast<ptrdiff_t>(length));
    CHECK(decode_error(indexed_bmp(3, 5, 8, 1, cut))
              .starts_with("expected a BMP with 3 rows, but the data end"));
  }
  CHECK(decode_error(indexed_bmp(3, 5, 8, 1, {0, 2, 0, 7, 5, 1})) ==
        "expected 3 rows as in the BMP header, but found more rows");
  CHECK(decode_error(indexed_bmp(-3, 5, 8, 1, eight)).find("the rows are from top to bottom") !=
        std::string::npos);
  CHECK(decode_error(indexed_bmp(3, 5, 8, 2, eight)).find("found compression 2 with 8 bits") !=
        std::string::npos);
}

TEST_CASE("the pixels of a BMP begin after its palette") {
  const Bytes rows(3 * 8, 7);
  CHECK(decoded(indexed_bmp(3, 5, 8, 0, rows), 3, 5, 1).bytes == Bytes(15, 7));
  CHECK(decoded(indexed_bmp(3, 5, 8, 0, rows, 54), 3, 5, 1).bytes ==
        Bytes(15, 7));  // some programs do not count the palette in the offset
  CHECK(decode_error(indexed_bmp(3, 5, 8, 0, rows, 1000)) ==
        "expected pixels after the header and the palette, which end at byte 1078, but the pixels begin at "
        "byte 1000");
}

TEST_CASE("crop takes the center, pad adds black borders") {
  Pixels pixels{2, 4, 1, {10, 20, 30, 40, 50, 60, 70, 80}};
  CHECK(decoded(png_of(pixels), 2, 2, 1, Resize::crop).bytes == Bytes{20, 30, 60, 70});
  CHECK(decoded(png_of(pixels), 4, 4, 1, Resize::pad).bytes ==
        Bytes{0, 0, 0, 0, 10, 20, 30, 40, 50, 60, 70, 80, 0, 0, 0, 0});
}

}  // namespace dtrain::test
