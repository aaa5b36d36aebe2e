#include "picture_look.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "data/pictures/picture_column.h"
#include "data/pictures/picture_list.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

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
  const PictureList list = list_classes(looked.train, {});
  if (list.class_names.size() < 2)
    throw UserError(
        fmt::format("{}: expected a folder of pictures for each class, found a single class", looked.train));
  looked.classes = list.class_names;
  looked.counts.assign(list.class_names.size(), 0);
  for (const int32_t number : list.classes) ++looked.counts[static_cast<size_t>(number)];
  std::vector<int64_t> heights, widths;
  bool all_grey = true;
  constexpr size_t kLooks = 1000;
  const size_t stride = (list.files.size() + kLooks - 1) / kLooks;
  for (size_t i = 0; i < list.files.size(); i += stride) {
    try {
      const PictureHeader header = header_of_picture(list, i);
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
