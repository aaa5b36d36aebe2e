#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <doctest/doctest.h>

#include "image/decode.h"
#include "image/resampler.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

Bytes resized(const Pixels& pixels, int64_t height, int64_t width) {
  Bytes out(static_cast<size_t>(height * width * pixels.channels));
  decode_picture(png_of(pixels), {height, width, pixels.channels, Resize::stretch}, out.data());
  return out;
}

double mean_difference(const Bytes& a, const Bytes& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

}  // namespace

TEST_CASE("resizing gives Pillow's numbers") {
  // The expected numbers are the result of PIL.Image.fromarray((i * 37 % 256 for i in range(7 * 9)) as 7 x
  // 9).resize((4, 3), BILINEAR). The results may differ slightly, because Pillow rounds between its two
  // passes.
  Pixels pixels{7, 9, 1, {}};
  for (int i = 0; i < 63; ++i) pixels.bytes.push_back(static_cast<uint8_t>(i * 37 % 256));
  const Bytes expected = {97, 133, 112, 94, 120, 112, 134, 126, 152, 134, 113, 149};
  const Bytes found = resized(pixels, 3, 4);
  for (size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(found[i] - expected[i]) <= 1);

  Pixels small{2, 3, 1, {0, 100, 200, 50, 150, 250}};
  const Bytes larger = {0,  40, 100, 160, 200, 13, 53, 113, 173, 213,
                        38, 78, 138, 198, 238, 50, 90, 150, 210, 250};
  const Bytes up = resized(small, 4, 5);
  for (size_t i = 0; i < larger.size(); ++i) CHECK(std::abs(up[i] - larger[i]) <= 1);
}

TEST_CASE("the weights of every new pixel sum to one and cover only the cropped part") {
  for (const int64_t extent : {1, 2, 7, 100, 1023})
    for (const int64_t size : {1, 3, 8, 224}) {
      const double from = extent > 4 ? 1.25 : 0, to = static_cast<double>(extent);
      const ResampleAxis axis(extent, from, to, size);
      REQUIRE(axis.size() == size);
      for (int64_t i = 0; i < size; ++i) {
        const auto n = static_cast<size_t>(i);
        float sum = 0;
        for (int64_t k = 0; k < axis.taps[n]; ++k)
          sum += axis.weights[axis.first_weight[n] + static_cast<size_t>(k)];
        CHECK(sum == doctest::Approx(1).epsilon(1e-5));
        CHECK(axis.first[n] >= static_cast<int64_t>(from));
        CHECK(axis.end(i) <= extent);
        CHECK(axis.taps[n] <= axis.most_taps);
      }
    }
}

TEST_CASE("a uniform color stays the same at any size") {
  for (const uint8_t value : {0, 1, 127, 254, 255}) {
    Pixels pixels{13, 17, 3, Bytes(13 * 17 * 3, value)};
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {5, 40}, {224, 3}})
      CHECK(resized(pixels, height, width) == Bytes(static_cast<size_t>(height * width * 3), value));
  }
}

TEST_CASE("scaling a JPEG while decoding looks like scaling it afterwards") {
  for (const auto& [height, width] : {std::pair{400, 600}, {803, 611}, {1203, 1601}}) {
    const Bytes file = jpeg_of(gradient(height, width, 3, 2));
    Bytes whole(static_cast<size_t>(height) * static_cast<size_t>(width) * 3);
    decode_picture(file, {height, width, 3, Resize::stretch}, whole.data());
    for (const Resize resize : {Resize::stretch, Resize::crop, Resize::pad}) {
      const PictureForm form{64, 64, 3, resize};
      Bytes fast(form.bytes()), slow(form.bytes());
      decode_picture(file, form, fast.data());
      decode_picture(png_of({height, width, 3, whole}), form, slow.data());
      CHECK(mean_difference(fast, slow) < 1);
    }
  }
}

}  // namespace dtrain::test
