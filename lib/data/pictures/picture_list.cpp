#include "data/pictures/picture_list.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <dirent.h>
#include <map>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/name_list.h"
#include "base/utf8.h"
#include "config/diagnostics.h"

namespace dtrain {

namespace {

/// Returns the first of `names` that is in `known`, ignoring case. Returns "" if no name is in `known`.
std::string find_called(const std::vector<std::string>& names, std::span<const std::string_view> known) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(known.begin(), known.end(), in_small_letters(name)) != known.end();
  });
  return found == names.end() ? "" : *found;
}

/// Returns true for files such as README.txt that lie directly in a folder with subfolders and do not have
/// the extension of an image.
bool is_beside_folders(const ListedFile& file) {
  return file.path.find('/') == std::string::npos && !has_ending_of_picture(file.path);
}

}  // namespace

bool has_ending_of_picture(const std::string& path) {
  const std::string ending = in_small_letters(path.substr(std::min(path.rfind('.'), path.size())));
  constexpr std::array<std::string_view, 4> kEndings{".jpg", ".jpeg", ".png", ".bmp"};
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::string warning_of_splits(const std::string& folder, const std::vector<std::string>& names) {
  const std::string train = find_called(names, kTrainFolders);
  std::string other = find_called(names, kValidationFolders);
  if (other.empty()) other = find_called(names, kTestFolders);
  if (train.empty() || other.empty()) return "";
  return fmt::format(
      "{}: the folders '{}' and '{}' are used as classes, but have the names of splits; if they are splits, "
      "train on the folder {} and use '{}' for another split",
      folder, train, other, path_in(folder, train), other);
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* open = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(open))
      if (entry->d_name[0] != '.' && file_type(path_in(folder, entry->d_name)) == FileType::directory)
        names.emplace_back(entry->d_name);
    closedir(open);
  }
  std::sort(names.begin(), names.end());
  return names;
}

FileListing list_pictures(const std::string& folder) {
  FileListing list{folder, list_folder(folder)};
  if (!folders_in(folder).empty())
    std::erase_if(list.files, [](const ListedFile& file) { return is_beside_folders(file); });
  if (list.files.empty())
    throw UserError(fmt::format("{}: this folder must contain images, but contains none", folder));
  return list;
}

PictureClasses list_classes(const std::string& folder, const std::vector<std::string>& class_names,
                            const std::string& what) {
  PictureClasses list{{folder, {}}, {}, class_names};
  const std::vector<std::string> folders = folders_in(folder);
  if (list.class_names.empty()) list.class_names = folders;
  std::map<std::string, int32_t> numbers;
  for (size_t i = 0; i < list.class_names.size(); ++i) numbers[list.class_names[i]] = static_cast<int32_t>(i);
  for (const std::string& name : folders)
    if (!numbers.contains(name))
      throw UserError(
          fmt::format("{}: expected only folders named after the classes {}, but the folder '{}' is not "
                      "named after any of them{}",
                      folder, list_some(list.class_names, 10), name, suggestion(name, list.class_names)));
  std::map<std::string, int64_t> counts;
  for (ListedFile& file : list_folder(folder)) {
    const size_t slash = file.path.find('/');
    if (slash == std::string::npos && folders.empty()) continue;
    const std::string name = file.path.substr(0, slash);
    const auto number = numbers.find(name);
    if (slash == std::string::npos && number == numbers.end()) {
      if (is_beside_folders(file)) continue;
      throw UserError(
          fmt::format("{}: {} must be in one folder per class, but this file is not in any of these folders",
                      path_in(folder, file.path), what));
    }
    ++counts[name];
    list.classes.push_back(number->second);
    list.files.files.push_back(std::move(file));
  }
  if (folders.empty())
    throw UserError(
        fmt::format("{}: expected one folder of {} per class, but found no folders", folder, what));
  for (const std::string& name : folders)
    if (counts[name] == 0)
      throw UserError(
          fmt::format("{}: expected {}, but this folder contains no files", path_in(folder, name), what));
  return list;
}

std::shared_ptr<const Column> class_column(const PictureClasses& list) {
  const size_t bytes = list.classes.size() * sizeof(int32_t);
  const auto data = allocate_bytes(bytes);
  std::memcpy(data.get(), list.classes.data(), bytes);
  return std::make_shared<MemoryColumn>(TensorSpec{list.files.folder, Shape{}, DType::int32},
                                        static_cast<int64_t>(list.classes.size()), data);
}

}  // namespace dtrain
