#include "picture_look.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "data/folder_listing.h"
#include "data/pictures/picture_column.h"
#include "data/pictures/picture_files.h"
#include "data/pictures/picture_list.h"

namespace dtrain {

namespace {

constexpr std::array<std::string_view, 2> kTrain{"train", "training"}, kTest{"test", "testing"};
constexpr std::array<std::string_view, 3> kValidation{"validation", "val", "valid"};

/// The folder's own folder of one of these names, where that has folders itself, as a split has one for each
/// class; else "".
std::string split_called(const std::string& folder, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    if (const std::string path = path_in(folder, std::string(name)); !folders_in(path).empty()) return path;
  return "";
}

/// Whether a folder has pictures in folders for splits that have none for classes.
bool has_flat_splits(const std::string& folder) {
  const std::vector<std::string> names = folders_in(folder);
  const auto is_among = [](const std::string& name, const auto& all) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  return std::any_of(names.begin(), names.end(), [&](const auto& name) { return is_among(name, kTrain); }) &&
         std::all_of(names.begin(), names.end(), [&](const auto& name) {
           return is_among(name, kTrain) || is_among(name, kValidation) || is_among(name, kTest);
         });
}

int64_t middle_of(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Looks at some; nothing where none of these is a picture.
std::optional<PictureSizes> sizes_of(const PictureSource& pictures) {
  std::vector<int64_t> heights, widths;
  bool all_grey = true;
  constexpr int64_t kLooks = 1000;
  const int64_t stride = (pictures.size() + kLooks - 1) / kLooks;
  for (int64_t i = 0; i < pictures.size(); i += stride) {
    try {
      const PictureHeader header = header_of_picture(pictures, i);
      heights.push_back(header.height);
      widths.push_back(header.width);
      all_grey = all_grey && header.grey;
    } catch (const UserError&) {  // fit names it
    }
  }
  if (heights.empty()) return std::nullopt;
  return PictureSizes{middle_of(heights), middle_of(widths), all_grey};
}

}  // namespace

std::optional<NamedPictures> find_named_pictures(const TableProfile& table, const std::string& path) {
  constexpr std::array<const char*, 6> kExtensions{"", ".jpg", ".jpeg", ".png", ".bmp", ".JPG"};
  constexpr size_t kTries = 5, kMostFolders = 50;
  const std::string beside = std::filesystem::path(path).parent_path().string();
  std::vector<std::string> folders = folders_in(beside.empty() ? "." : beside);
  folders.resize(std::min(folders.size(), kMostFolders));
  folders.insert(folders.begin(), "");
  for (size_t column = 0; column < table.columns.size(); ++column) {
    const auto& values = table.columns[column].values;
    if (values.empty() || values[0].empty()) continue;
    for (const std::string& name : folders)
      for (const char* extension : kExtensions) {
        const std::string folder = name.empty() ? beside : path_in(beside, name);
        FileListing listing;  // of whole paths
        const auto add = [&](const std::string& value) {
          listing.files.push_back(list_file(path_in(folder, value + extension)));
          return listing.files.back().problem.empty();
        };
        const auto tried = values.begin() + static_cast<ptrdiff_t>(std::min(kTries, values.size()));
        if (!std::all_of(values.begin(), tried, add)) continue;
        std::for_each(tried, values.end(), add);
        if (const auto sizes = sizes_of(*picture_files(std::move(listing))))
          return NamedPictures{column, name.empty() ? "" : folder, extension, *sizes};
      }
  }
  return std::nullopt;
}

LookedAtPictures look_at_pictures(const std::string& folder) {
  LookedAtPictures looked;
  looked.train = split_called(folder, kTrain);
  if (!looked.train.empty()) {
    looked.validation = split_called(folder, kValidation);
    looked.test = split_called(folder, kTest);
  } else {  // a class may be called "train", beside "bus"
    if (has_flat_splits(folder))
      throw UserError(fmt::format(
          "{}: expected a folder of pictures for each class, found folders of splits that have none",
          folder));
    looked.train = folder;
  }
  const PictureClasses list = list_classes(looked.train, {});
  if (list.class_names.size() < 2)
    throw UserError(
        fmt::format("{}: expected a folder of pictures for each class, found a single class", looked.train));
  looked.classes = list.class_names;
  looked.counts.assign(list.class_names.size(), 0);
  for (const int32_t number : list.classes) ++looked.counts[static_cast<size_t>(number)];
  const auto sizes = sizes_of(*picture_files(list.files));
  if (!sizes)
    throw UserError(fmt::format("{}: expected pictures (JPEG, PNG, BMP), found none", looked.train));
  looked.sizes = *sizes;
  return looked;
}

}  // namespace dtrain
