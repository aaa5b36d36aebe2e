#include "picture_look.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
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

}  // namespace

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
  std::vector<int64_t> heights, widths;
  bool all_grey = true;
  constexpr int64_t kLooks = 1000;
  const auto pictures = picture_files(list.files);
  const int64_t stride = (pictures->size() + kLooks - 1) / kLooks;
  for (int64_t i = 0; i < pictures->size(); i += stride) {
    try {
      const PictureHeader header = header_of_picture(*pictures, i);
      heights.push_back(header.height);
      widths.push_back(header.width);
      all_grey = all_grey && header.grey;
    } catch (const UserError&) {  // fit names it
    }
  }
  if (heights.empty())
    throw UserError(fmt::format("{}: expected pictures (JPEG, PNG, BMP), found none", looked.train));
  looked.height = middle_of(heights);
  looked.width = middle_of(widths);
  looked.grey = all_grey;
  return looked;
}

}  // namespace dtrain
