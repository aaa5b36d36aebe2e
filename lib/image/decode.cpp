#include "image/decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "image/picture_rows.h"
#include "image/resampler.h"

namespace dtrain {

namespace {

/// A rectangle of an image, in pixels.
struct Box {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// One of the eight EXIF orientations. To display the stored image, it is first transposed (rows become
/// columns) and then mirrored.
struct Turn {
  explicit Turn(int orientation)
      : transposed(orientation >= 5),
        mirrored_rows(orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8),
        mirrored_columns(orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) {}

  bool is_none() const { return !transposed && !mirrored_rows && !mirrored_columns; }

  bool transposed;
  bool mirrored_rows, mirrored_columns;  // applied after transposing
};

/// Returns the central part of an image that has the aspect ratio of `form`. It is cropped in the same way as
/// in Keras's smart_resize.
Box middle_of(int64_t height, int64_t width, const PictureForm& form) {
  const auto part = [](int64_t other, int64_t wanted, int64_t other_wanted) {
    return std::max<int64_t>(1, other * wanted / other_wanted);
  };
  Box box;
  box.height = std::min(height, part(width, form.height, form.width));
  box.width = std::min(width, part(height, form.width, form.height));
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

/// Returns the part of the output image that an image of this size fills if it is not cropped. The image is
/// centered and keeps its aspect ratio.
Box place_in(int64_t height, int64_t width, const PictureForm& form) {
  const double factor = std::min(static_cast<double>(form.height) / static_cast<double>(height),
                                 static_cast<double>(form.width) / static_cast<double>(width));
  const auto scaled = [&](int64_t extent, int64_t most) {
    return std::clamp<int64_t>(std::llround(static_cast<double>(extent) * factor), 1, most);
  };
  Box box;
  box.height = scaled(height, form.height);
  box.width = scaled(width, form.width);
  box.top = (form.height - box.height) / 2;
  box.left = (form.width - box.width) / 2;
  return box;
}

/// Converts a box of the displayed image to the corresponding box of the stored image. `height` and `width`
/// are the size of the displayed image.
Box before_turn(Box box, int64_t height, int64_t width, const Turn& turn) {
  if (turn.mirrored_rows) box.top = height - box.top - box.height;
  if (turn.mirrored_columns) box.left = width - box.left - box.width;
  if (turn.transposed) {
    std::swap(box.top, box.left);
    std::swap(box.height, box.width);
  }
  return box;
}

uint8_t gray_of(const uint8_t* rgb) {  // luma of Rec. 601, as in Pillow
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

/// Converts a row of `width` pixels from `from` channels to `to` channels. `src` and `dst` may be equal if
/// `to` <= `from`.
void convert_row(const uint8_t* src, int from, uint8_t* dst, int to, int64_t width) {
  const bool gray = from <= 2, alpha = from == 2 || from == 4;
  for (int64_t x = 0; x < width; ++x, src += from, dst += to) {
    const uint8_t opacity = alpha ? src[from - 1] : 255;
    if (to == 1) {
      dst[0] = gray ? src[0] : gray_of(src);
      continue;
    }
    const uint8_t red = src[0], green = src[gray ? 0 : 1], blue = src[gray ? 0 : 2];
    dst[0] = red;
    dst[1] = green;
    dst[2] = blue;
    if (to == 4) dst[3] = opacity;
  }
}

/// Writes the pixels of a stored image, [height, width], to `dst` in the orientation in which the image is
/// displayed.
void turn_pixels(const std::vector<uint8_t>& src, int64_t height, int64_t width, int channels,
                 const Turn& turn, uint8_t* dst, size_t dst_row_bytes) {
  const int64_t rows = turn.transposed ? width : height, columns = turn.transposed ? height : width;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t y = turn.mirrored_rows ? rows - 1 - row : row;
      int64_t x = turn.mirrored_columns ? columns - 1 - column : column;
      if (turn.transposed) std::swap(y, x);
      std::copy_n(src.data() + (y * width + x) * channels, channels,
                  dst + static_cast<size_t>(row) * dst_row_bytes + column * channels);
    }
}

/// Reads the rows of an image and converts them to the requested number of channels.
class ConvertedRows {
 public:
  ConvertedRows(PictureRows& rows, int channels) : rows_(rows), channels_(channels) {
    if (rows.channels() != channels) row_.resize(static_cast<size_t>(rows.width() * rows.channels()));
  }
  void read(uint8_t* dst) {
    if (row_.empty()) return rows_.read(dst);
    rows_.read(row_.data());
    convert_row(row_.data(), rows_.channels(), dst, channels_, rows_.width());
  }

 private:
  PictureRows& rows_;
  const int channels_;
  std::vector<uint8_t> row_;
};

/// Decodes a box of the stored image and resizes it to [height, width] pixels. The box is given in pixels of
/// the full-size image.
void decode_box(PictureRows& rows, const Box& box, int64_t height, int64_t width, int channels, uint8_t* dst,
                size_t dst_row_bytes) {
  const auto ratio = [](int64_t wanted, int64_t there) {
    return static_cast<double>(wanted) / static_cast<double>(there);
  };
  rows.start(channels, std::max(ratio(height, box.height), ratio(width, box.width)));
  const auto axis = [&](int64_t extent, int64_t from, int64_t size, int64_t wanted) {
    const double begin = static_cast<double>(from) * rows.scale();
    const double end = static_cast<double>(from + size) * rows.scale();
    return ResampleAxis(extent, begin, std::min(end, static_cast<double>(extent)), wanted);
  };
  ConvertedRows source(rows, channels);
  Resampler resampler(axis(rows.height(), box.top, box.height, height),
                      axis(rows.width(), box.left, box.width, width), rows.width(), channels);
  int64_t read = resampler.run([&](uint8_t* row) { source.read(row); }, dst, dst_row_bytes);
  // The remaining rows are also read, so that damage in them is reported.
  std::vector<uint8_t> rest(read < rows.height() ? static_cast<size_t>(rows.width() * channels) : 0);
  for (; read < rows.height(); ++read) source.read(rest.data());
  rows.finish();
}

void fill_pixels(const PictureForm& form, uint8_t* dst) {
  const std::array<uint32_t, 4> color{form.fill >> 16 & 0xff, form.fill >> 8 & 0xff, form.fill & 0xff, 0};
  for (size_t i = 0; i < form.bytes(); ++i)
    dst[i] = static_cast<uint8_t>(color[form.channels == 1 ? 2 : i % static_cast<size_t>(form.channels)]);
}

/// Decodes a box of the stored image and resizes it to [height, width] pixels with nearest-neighbor
/// interpolation: each result pixel is the nearest pixel of the box.
void decode_box_nearest(PictureRows& rows, const Box& box, int64_t height, int64_t width, int channels,
                        uint8_t* dst, size_t dst_row_bytes) {
  if (channels == 1)
    rows.start_as_stored();
  else
    rows.start(channels, 1);
  const auto nearest = [](int64_t from, int64_t extent, int64_t i, int64_t size) {
    return from + (2 * i + 1) * extent / (2 * size);
  };
  ConvertedRows source(rows, channels);
  std::vector<uint8_t> row(static_cast<size_t>(rows.width() * channels));
  int64_t read = 0;
  for (int64_t y = 0; y < height; ++y, dst += dst_row_bytes) {
    for (const int64_t wanted = nearest(box.top, box.height, y, height); read <= wanted; ++read)
      source.read(row.data());
    for (int64_t x = 0; x < width; ++x)
      std::copy_n(row.data() + nearest(box.left, box.width, x, width) * channels, channels,
                  dst + x * channels);
  }
  // The remaining rows are also read, so that damage in them is reported.
  for (; read < rows.height(); ++read) source.read(row.data());
  rows.finish();
}

}  // namespace

void decode_picture(std::span<const uint8_t> file, const PictureForm& form, uint8_t* dst) {
  const auto rows = open_picture(file, file.size());
  if (form.is_mask && picture_format(file) == PictureFormat::jpeg)
    throw UserError(fmt::format(
        "expected a mask as a {} file, but found a JPEG file; JPEG compression changes the values of pixels",
        form.channels == 1 ? "PNG" : "PNG or BMP"));
  if (form.is_mask && rows->has_16_bits())
    throw UserError(
        "expected a mask with values of at most 8 bits, but found 16 bits; convert the mask to 8 bits");
  const auto decode = form.is_mask ? decode_box_nearest : decode_box;
  const Turn turn(rows->orientation());
  int64_t height = rows->full_height(), width = rows->full_width();
  if (turn.transposed) std::swap(height, width);
  Box from{0, 0, height, width}, to{0, 0, form.height, form.width};
  if (form.resize == Resize::crop) from = middle_of(height, width, form);
  if (form.resize == Resize::pad) to = place_in(height, width, form);
  if (to.height < form.height || to.width < form.width) fill_pixels(form, dst);

  const size_t row_bytes = static_cast<size_t>(form.width * form.channels);
  uint8_t* const first = dst + static_cast<size_t>(to.top) * row_bytes + to.left * form.channels;
  const Box stored = before_turn(from, height, width, turn);
  if (turn.is_none()) return decode(*rows, stored, to.height, to.width, form.channels, first, row_bytes);
  int64_t stored_height = to.height, stored_width = to.width;
  if (turn.transposed) std::swap(stored_height, stored_width);
  std::vector<uint8_t> pixels(static_cast<size_t>(to.height * to.width * form.channels));
  decode(*rows, stored, stored_height, stored_width, form.channels, pixels.data(),
         static_cast<size_t>(stored_width * form.channels));
  turn_pixels(pixels, stored_height, stored_width, form.channels, turn, first, row_bytes);
}

bool is_picture_file(std::span<const uint8_t> start) {
  return picture_format(start) != PictureFormat::none || is_unread_format(start);
}

PictureHeader read_picture_header(std::span<const uint8_t> start, size_t file_bytes) {
  const auto rows = open_picture(start, file_bytes);
  PictureHeader header{rows->full_height(), rows->full_width(), rows->is_gray(),
                       picture_format(start) != PictureFormat::jpeg, rows->has_16_bits()};
  if (Turn(rows->orientation()).transposed) std::swap(header.height, header.width);
  return header;
}

}  // namespace dtrain
