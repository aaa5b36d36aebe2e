// Tests incomplete image files, and files that would exhaust memory.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "image/decode.h"
#include "support/errors.h"
#include "support/image_files.h"
#include "support/text.h"

namespace dtrain::test {

namespace {

/// Decodes the file and returns the error message; "" if the file is valid.
std::string decode_error(const Bytes& file) {
  const PictureForm form{16, 16, 3, Resize::stretch};
  Bytes out(form.bytes());
  return error_of([&] { decode_picture(file, form, out.data()); });
}

std::vector<Bytes> one_of_each() {
  const Pixels pixels = gradient(40, 30, 3);
  return {jpeg_of(pixels), jpeg_of(pixels, {.progressive = true}), png_of(pixels),
          png_of(pixels, {.interlaced = true}), bmp_of(pixels)};
}

/// Returns a PNG with this size, 8 bits of RGB, and these chunks.
Bytes png_with(uint32_t width, uint32_t height, const std::vector<Bytes>& chunks) {
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, header;
  for (const uint32_t extent : {width, height})
    for (int shift = 24; shift >= 0; shift -= 8) header.push_back(static_cast<uint8_t>(extent >> shift));
  header.insert(header.end(), {8, 2, 0, 0, 0});
  const Bytes first = png_chunk("IHDR", header);
  file.insert(file.end(), first.begin(), first.end());
  for (const Bytes& chunk : chunks) file.insert(file.end(), chunk.begin(), chunk.end());
  return file;
}

}  // namespace

TEST_CASE("an image truncated anywhere is an error") {
  for (const Bytes& whole : one_of_each()) {
    CHECK(decode_error(whole) == "");
    for (size_t length = 0; length < whole.size(); length += 1 + length / 16) {
      CAPTURE(length);
      CHECK(contains(decode_error(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length))),
                     "expected"));
    }
    CHECK(contains(decode_error(Bytes(whole.begin(), whole.end() - 3)), "expected"));
  }
}

TEST_CASE("an image with changed bytes is decoded or is an error") {
  // To test more mutations or different ones, set DTRAIN_MUTATIONS=100000 and DTRAIN_SEED=2, for example.
  const char *count = std::getenv("DTRAIN_MUTATIONS"), *seed = std::getenv("DTRAIN_SEED");
  std::mt19937 random(seed ? static_cast<uint32_t>(std::stoul(seed)) : 7u);
  const int mutations = count ? std::stoi(count) : 400;
  for (const Bytes& whole : one_of_each())
    for (int i = 0; i < mutations; ++i) {
      Bytes changed = whole;
      for (uint32_t n = random() % 4 + 1; n > 0; --n)
        changed[random() % changed.size()] = static_cast<uint8_t>(random());
      const std::string error = decode_error(changed);
      CHECK((error.empty() || contains(error, "expected")));
    }
}

TEST_CASE("a wrong size in a header allocates no memory") {
  const Bytes begin = png_chunk("IDAT", {0x78, 0x9c, 0x63, 0x60});
  CHECK(contains(decode_error(png_with(20000, 20000, {begin})),
                 "at most 178956970 pixels, but found 20000 x 20000"));
  CHECK(contains(decode_error(png_with(13000, 13000, {begin})), "too few for this number of pixels"));
  CHECK(contains(decode_error(png_with(0xffffffff, 1, {begin})), "expected"));
  Bytes jpeg = jpeg_of(gradient(16, 16, 3));
  const Bytes marker{0xff, 0xc0};
  const auto frame = std::search(jpeg.begin(), jpeg.end(), marker.begin(), marker.end());
  REQUIRE(frame != jpeg.end());
  for (int i = 5; i < 9; ++i) frame[i] = 0x2f;  // 12079 x 12079
  CHECK(contains(decode_error(jpeg), "too few for this number of pixels"));
  for (int i = 5; i < 9; ++i) frame[i] = 0xfe;
  CHECK(contains(decode_error(jpeg), "at most"));
  Bytes bmp = bmp_of(gradient(4, 4, 3));
  CHECK(contains(decode_error(Bytes(bmp.begin(), bmp.end() - 1)), "expected a BMP of 102 bytes"));
  bmp[20] = 1;  // 65536 pixels wide
  CHECK(contains(decode_error(bmp), "too few for this number of pixels"));
  bmp[19] = bmp[20] = bmp[21] = 0x7f;
  CHECK(contains(decode_error(bmp), "expected"));
}

TEST_CASE("damaged compressed texts and color profiles do not change the pixels") {
  // The keyword "k", two zero bytes, and 4096 bytes that are not valid deflate data.
  const Pixels pixels = gradient(8, 8, 3);
  const Bytes whole = png_of(pixels);
  Bytes text{'k', 0, 0};
  for (int i = 0; i < 4096; ++i) text.push_back(static_cast<uint8_t>(i * 131));
  for (const char* type : {"zTXt", "iCCP", "iTXt"}) {
    CAPTURE(type);
    Bytes file(whole.begin(), whole.begin() + 33);
    const Bytes chunk = png_chunk(type, text);
    file.insert(file.end(), chunk.begin(), chunk.end());
    file.insert(file.end(), whole.begin() + 33, whole.end());
    Bytes out(8 * 8 * 3);
    decode_picture(file, {8, 8, 3, Resize::stretch}, out.data());
    CHECK(out == pixels.bytes);
  }
}

TEST_CASE("the error for another file format names the format") {
  const auto of = [](const std::string& text) { return decode_error(Bytes(text.begin(), text.end())); };
  CHECK(of("") == "expected a JPEG, PNG or BMP, found an empty file");
  CHECK(of("path,label\n") == "expected a JPEG, PNG or BMP, found a file that is not an image");
  CHECK(of("GIF89a......") == "expected a JPEG, PNG or BMP, found a GIF");
  CHECK(of("RIFF....WEBPVP8 ") == "expected a JPEG, PNG or BMP, found a WebP image");
}

TEST_CASE("a header is read without the rest of the file") {
  for (const Bytes& whole : one_of_each()) {
    read_picture_header(std::span(whole).first(std::min<size_t>(whole.size(), 900)), whole.size());
    CHECK_THROWS_AS(read_picture_header(std::span(whole).first(8), whole.size()), UserError);
  }
}

}  // namespace dtrain::test
