#include "data/pictures/picture_column.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/stopwatch.h"
#include "data/loader/parallel.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

namespace {

constexpr int64_t kAllBytes = std::numeric_limits<int64_t>::max();

/// The error for a mask whose colors do not match the classes in the configuration. The mask itself can be
/// read, so leaving it out would not help.
class WrongClasses : public UserError {
 public:
  using UserError::UserError;
};

/// Reads at most `most` bytes of an image, and calls `work` with these bytes and with the full size of the
/// image. If `work` throws a UserError, the name of the image is added to the message.
template <class Work>
void with_bytes(const PictureSource& source, int64_t i, int64_t most, Work work) {
  // A buffer larger than this is freed before the thread reads its next image.
  constexpr size_t kKept = 16 << 20;
  thread_local std::vector<uint8_t> bytes;
  if (bytes.capacity() > kKept) std::vector<uint8_t>().swap(bytes);
  const int64_t length = source.read(i, most, bytes);
  try {
    work(std::span<const uint8_t>(bytes), length);
  } catch (const WrongClasses& error) {
    throw WrongClasses(source.name(i) + ": " + error.what());
  } catch (const UserError& error) {
    throw UserError(source.name(i) + ": " + error.what());
  }
}

std::string name_of_color(uint32_t color) {
  const uint32_t level = color & 0xff;
  return color == (level << 16 | level << 8 | level) ? std::to_string(level)
                                                     : fmt::format("\"#{:06x}\"", color);
}

/// Returns advice for a mask with a color that belongs to no class. If the mask has as many colors as there
/// are classes, these colors probably are the classes.
std::string advice_for_classes(std::span<const uint8_t> rgb, size_t classes) {
  std::set<uint32_t> colors;
  for (size_t i = 0; i + 2 < rgb.size() && colors.size() <= classes; i += 3)
    colors.insert(uint32_t{rgb[i]} << 16 | uint32_t{rgb[i + 1]} << 8 | rgb[i + 2]);
  constexpr size_t kMostShown = 20;
  if (colors.size() != classes || classes > kMostShown)
    return "'classes' must list the gray level or the color of each class";
  std::vector<std::string> names;
  for (const uint32_t color : colors) names.push_back(name_of_color(color));
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("the mask has only the values {0}: if they are the classes, set 'classes: [{0}]'", list);
}

/// Decodes an image and returns the number of its encoded bytes.
int64_t decode_one(const PictureSource& source, int64_t i, const PictureRow& row, uint8_t* dst) {
  int64_t length = 0;
  with_bytes(source, i, kAllBytes, [&](auto bytes, int64_t all) {
    const Stopwatch stopwatch(read_seconds_of_thread().decoding);
    row.decode(bytes, dst);
    length = all;
  });
  return length;
}

class PictureColumn final : public Column {
 public:
  PictureColumn(std::string name, std::shared_ptr<const PictureSource> source, std::vector<int64_t> pictures,
                PictureRow row, int64_t largest, std::string advice)
      : spec_{std::move(name), row.shape(), DType::uint8},
        source_(std::move(source)),
        pictures_(std::move(pictures)),
        row_(std::move(row)),
        largest_(largest),
        advice_(std::move(advice)) {}

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return static_cast<int64_t>(pictures_.size()); }
  bool in_memory() const override { return false; }
  void check() const override { source_->check(); }
  size_t working_bytes() const override { return static_cast<size_t>(largest_) + row_.working_bytes(); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    auto* out = static_cast<uint8_t*>(dst);
    for (const int64_t row : rows) {
      try {
        decode_one(*source_, pictures_[static_cast<size_t>(row)], row_, out);
      } catch (const WrongClasses&) {
        throw;
      } catch (const UserError& error) {
        throw UserError(error.what() + advice_);
      }
      out += row_bytes();
    }
  }

 private:
  TensorSpec spec_;
  std::shared_ptr<const PictureSource> source_;
  std::vector<int64_t> pictures_;
  PictureRow row_;
  int64_t largest_;
  std::string advice_;
};

}  // namespace

Shape PictureRow::shape() const {
  return classes ? Shape{form.height, form.width} : Shape{form.height, form.width, form.channels};
}

void PictureRow::decode(std::span<const uint8_t> file, uint8_t* dst) const {
  if (!classes || classes->are_numbers()) return decode_picture(file, form, dst);
  std::vector<uint8_t> pixels(form.bytes());
  decode_picture(file, form, pixels.data());
  const auto unknown = classes->find(pixels, dst);
  if (!unknown) return;
  const uint8_t* rgb = pixels.data() + 3 * *unknown;
  const auto width = static_cast<size_t>(form.width);
  throw WrongClasses(fmt::format(
      "each pixel must have the color of one of the {} classes, but found {} in row {}, column {} (counted "
      "from 0) of the resized mask; {}",
      classes->colors.size(),
      rgb[0] == rgb[1] && rgb[1] == rgb[2] ? fmt::format("the gray level {}", rgb[0])
                                           : fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]),
      *unknown / width, *unknown % width, advice_for_classes(pixels, classes->colors.size())));
}

size_t PictureRow::working_bytes() const {
  return !classes || classes->are_numbers() ? 0 : form.bytes();
}

std::shared_ptr<const Column> picture_column(std::string name, std::shared_ptr<const PictureSource> source,
                                             CheckedPictures pictures, const PictureRow& row) {
  return std::make_shared<PictureColumn>(std::move(name), std::move(source), std::move(pictures.kept), row,
                                         pictures.largest, std::move(pictures.advice));
}

PictureHeader header_of_picture(const PictureSource& source, int64_t i, int64_t* bytes_of_all) {
  constexpr int64_t kStart = 16 << 10;
  PictureHeader header;
  bool is_whole = true;
  const auto read = [&](auto bytes, int64_t length) {
    if (bytes_of_all) *bytes_of_all = length;
    is_whole = static_cast<int64_t>(bytes.size()) == length;
    header = read_picture_header(bytes, static_cast<size_t>(length));
  };
  try {
    with_bytes(source, i, kStart, read);
    return header;
  } catch (const UserError&) {
    if (is_whole) throw;
  }
  // The whole file is read because the header may be longer than kStart.
  with_bytes(source, i, kAllBytes, read);
  return header;
}

std::string describe_others(int64_t others, const std::string& how, bool can_skip) {
  std::string text;
  if (others > 0) text = fmt::format("; {} more {}", others, how);
  if (can_skip) text += "; set 'on_error: skip' to leave out images that cannot be read";
  return text;
}

CheckedPictures check_pictures(const PictureSource& source, const std::string& where, const PictureRow& row,
                               OnError on_error, bool can_skip) {
  CheckedPictures checked;
  if (on_error == OnError::error && can_skip) checked.advice = describe_others(0, "", true);
  std::vector<int64_t> lengths(static_cast<size_t>(source.size()));
  const auto find_largest = [&] {
    for (const int64_t i : checked.kept)
      checked.largest = std::max(checked.largest, lengths[static_cast<size_t>(i)]);
  };
  std::vector<std::string> problems(static_cast<size_t>(source.size()));
  run_blocks(source.size(), [&](int64_t i) {
    thread_local std::vector<uint8_t> pixels;
    int64_t& length = lengths[static_cast<size_t>(i)];
    try {
      if (on_error == OnError::error) {
        header_of_picture(source, i, &length);
      } else {
        pixels.resize(static_cast<size_t>(row.shape().elements()));
        length = decode_one(source, i, row, pixels.data());
      }
    } catch (const UserError& error) {
      problems[static_cast<size_t>(i)] = error.what();
    }
  });
  for (int64_t i = 0; i < source.size(); ++i) {
    const std::string& problem = problems[static_cast<size_t>(i)];
    if (problem.empty())
      checked.kept.push_back(i);
    else if (++checked.skipped == 1)
      checked.first_skipped = problem;
  }
  if (on_error == OnError::error && checked.skipped > 0)
    throw UserError(checked.first_skipped + describe_others(checked.skipped - 1, "cannot be read",
                                                            can_skip && !checked.kept.empty()));
  if (on_error == OnError::skip && checked.kept.empty())
    throw UserError(fmt::format("{}: none of the {} files is an image that can be read; the first error: {}",
                                where, checked.skipped, checked.first_skipped));
  find_largest();
  return checked;
}

}  // namespace dtrain
