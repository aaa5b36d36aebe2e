#include "picture_look.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

struct Extent {
  int64_t height = 0, width = 0;
  bool grey = false;
};

unsigned byte_at(const std::string& bytes, size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

unsigned big_endian(const std::string& bytes, size_t at, size_t count) {
  unsigned value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | byte_at(bytes, at + i);
  return value;
}

unsigned little_endian(const std::string& bytes, size_t at, size_t count) {
  unsigned value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | byte_at(bytes, at + i);
  return value;
}

/// A JPEG's frame header, behind segments that say their lengths.
std::optional<Extent> extent_of_jpeg(const std::string& bytes) {
  for (size_t at = 2; at + 9 < bytes.size() && byte_at(bytes, at) == 0xff;) {
    const unsigned marker = byte_at(bytes, at + 1);
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame)
      return Extent{big_endian(bytes, at + 5, 2), big_endian(bytes, at + 7, 2), byte_at(bytes, at + 9) == 1};
    at += 2 + big_endian(bytes, at + 2, 2);
  }
  return std::nullopt;
}

/// Of the header, as far as it goes; the decoders look closely, later.
std::optional<Extent> extent_of(const fs::path& path) {
  constexpr size_t kLooked = 256 << 10;  // a JPEG's frame stands behind its thumbnails and profiles
  std::string bytes(kLooked, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (bytes.starts_with("\xff\xd8")) return extent_of_jpeg(bytes);
  if (bytes.starts_with("\x89PNG")) {
    const unsigned type = byte_at(bytes, 25);
    return Extent{big_endian(bytes, 20, 4), big_endian(bytes, 16, 4), type == 0 || type == 4};
  }
  if (bytes.starts_with("BM")) {
    const auto height = static_cast<int32_t>(little_endian(bytes, 22, 4));
    return Extent{std::abs(int64_t{height}), little_endian(bytes, 18, 4), false};
  }
  return std::nullopt;
}

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  constexpr std::array<std::string_view, 4> kKnown{".jpg", ".jpeg", ".png", ".bmp"};
  return std::find(kKnown.begin(), kKnown.end(), extension) != kKnown.end();
}

std::vector<fs::path> pictures_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; entry != end; entry.increment(error))
    if (is_picture(entry->path()) && entry->is_regular_file(error)) found.push_back(entry->path());
  return found;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.path().filename().string().starts_with('.'))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// The folder's own folder of one of these names; "" without one.
std::string folder_called(const fs::path& folder, std::initializer_list<const char*> names) {
  std::error_code error;
  for (const char* name : names)
    if (fs::is_directory(folder / name, error)) return (folder / name).string();
  return "";
}

int64_t middle_of(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

LookedAtPictures look_at_pictures(const std::string& folder) {
  LookedAtPictures looked;
  looked.train = folder_called(folder, {"train", "training"});
  if (!looked.train.empty()) {
    looked.validation = folder_called(folder, {"validation", "val", "valid"});
    looked.test = folder_called(folder, {"test", "testing"});
  } else {
    looked.train = folder;
  }
  std::vector<int64_t> heights, widths;
  bool all_grey = true;
  for (const fs::path& each : folders_in(looked.train)) {
    const std::vector<fs::path> pictures = pictures_in(each);
    if (pictures.empty()) continue;
    looked.classes.push_back(each.filename().string());
    looked.counts.push_back(static_cast<int64_t>(pictures.size()));
    constexpr size_t kLooks = 50;  // of a class
    const size_t stride = (pictures.size() + kLooks - 1) / kLooks;
    for (size_t i = 0; i < pictures.size(); i += stride) {
      const auto extent = extent_of(pictures[i]);
      if (!extent) continue;
      heights.push_back(extent->height);
      widths.push_back(extent->width);
      all_grey = all_grey && extent->grey;
    }
  }
  if (looked.classes.size() < 2)
    throw UserError(fmt::format("{}: expected a folder of pictures (JPEG, PNG, BMP) for each class, found {}",
                                looked.train,
                                looked.classes.empty() ? "no folder with pictures" : "a single class"));
  looked.height = middle_of(heights);
  looked.width = middle_of(widths);
  looked.grey = !heights.empty() && all_grey;
  return looked;
}

}  // namespace dtrain
