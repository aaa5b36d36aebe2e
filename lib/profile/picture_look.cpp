#include "profile/picture_look.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "data/files/folder_listing.h"
#include "data/loader/parallel.h"
#include "data/pictures/picture_column.h"
#include "data/pictures/picture_files.h"
#include "data/pictures/picture_list.h"

namespace dtrain {

std::string split_called(const std::string& folder, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    if (std::string path = path_in(folder, std::string(name)); !folders_in(path).empty()) return path;
  return "";
}

namespace {

/// Returns true if all subfolders have the names of splits, such as "train" and "val", and at least one of
/// them is the training split.
bool has_flat_splits(const std::string& folder) {
  const std::vector<std::string> names = folders_in(folder);
  const auto is_among = [](const std::string& name, const auto& all) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  return std::any_of(names.begin(), names.end(),
                     [&](const auto& name) { return is_among(name, kTrainFolders); }) &&
         std::all_of(names.begin(), names.end(), [&](const auto& name) {
           return is_among(name, kTrainFolders) || is_among(name, kValidationFolders) ||
                  is_among(name, kTestFolders);
         });
}

int64_t middle_of(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The image headers of files; nullopt for a file that is not an image.
using Found = std::vector<std::optional<PictureHeader>>;

/// Returns the index of the file that represents the i-th group of `stride` consecutive files. The position
/// of this file varies from group to group. If it were the same in every group and the files came in pairs,
/// the sample could contain, for example, only the first file of each pair.
int64_t place_of(int64_t i, int64_t stride, int64_t files) {
  return std::min(i * stride + i * 40'503 / 16 % stride, files - 1);
}

Found read_headers(const PictureSource& files, int64_t stride) {
  Found found(static_cast<size_t>((files.size() + stride - 1) / stride));
  run_blocks(static_cast<int64_t>(found.size()), [&](int64_t i) {
    try {
      found[static_cast<size_t>(i)] = header_of_picture(files, place_of(i, stride, files.size()));
    } catch (const UserError&) {  // the file is not an image
    }
  });
  return found;
}

}  // namespace

PictureLook inspect_files(const PictureSource& files, std::vector<bool>* is_bad) {
  constexpr int64_t kMostLooks = 20'000;
  constexpr size_t kMostNames = 3;
  const int64_t stride = std::max<int64_t>(1, (files.size() + kMostLooks - 1) / kMostLooks);
  const Found found = read_headers(files, stride);
  PictureLook look;
  look.files = files.size();
  look.looked = static_cast<int64_t>(found.size());
  look.gray = std::any_of(found.begin(), found.end(), [](const auto& one) { return one.has_value(); });
  std::vector<int64_t> heights, widths;
  if (is_bad) is_bad->assign(static_cast<size_t>(files.size()), false);
  for (size_t i = 0; i < found.size(); ++i) {
    const int64_t file = place_of(static_cast<int64_t>(i), stride, files.size());
    if (found[i]) {
      heights.push_back(found[i]->height);
      widths.push_back(found[i]->width);
      look.gray = look.gray && found[i]->gray;
      look.has_16_bits = look.has_16_bits || found[i]->has_16_bits;
      continue;
    }
    ++look.bad;
    if (look.first.size() < kMostNames) look.first.push_back(files.name(file));
    if (is_bad && stride == 1) (*is_bad)[i] = true;
  }
  look.height = middle_of(heights);
  look.width = middle_of(widths);
  return look;
}

std::string describe_bad(const PictureLook& look, const std::string& where) {
  if (look.bad == 0) return "";
  const std::string of = look.looked == look.files
                             ? format_plural(look.files, "file")
                             : fmt::format("{} that {} examined (of {})", format_plural(look.looked, "file"),
                                           look.looked == 1 ? "was" : "were", format_count(look.files));
  std::string text =
      fmt::format("{} of {} {} {} that can be read: {}", format_count(look.bad), of, where,
                  look.bad == 1 ? "is not an image" : "are not images", fmt::join(look.first, ", "));
  if (look.bad > static_cast<int64_t>(look.first.size())) text += ", ...";
  return text +
         "; to skip such files, set 'on_error: skip' (all files are then decoded once before each run)";
}

namespace {

/// Returns the first column whose values have the extensions of image files. Other columns are ignored if
/// they are empty or if their values differ in every row. At most one other column may remain: it describes
/// the images. Returns nullopt if more columns remain, or if no column has names of image files.
std::optional<size_t> find_names_of_pictures(const TableProfile& table) {
  std::optional<size_t> names;
  int64_t others = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    const auto endings = std::count_if(column.values.begin(), column.values.end(), has_ending_of_picture);
    if (!names && !column.values.empty() && 10 * static_cast<size_t>(endings) >= 9 * column.values.size())
      names = i;
    else if (column.kind != ColumnProfile::Kind::empty && !column.distinct)
      ++others;
  }
  return others <= 1 ? names : std::nullopt;
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
        FileListing listing;  // files, listed with full paths
        const auto add = [&](const std::string& value) {
          listing.files.push_back(list_file(path_in(folder, value + extension)));
          return listing.files.back().problem.empty();
        };
        const auto tried = values.begin() + static_cast<ptrdiff_t>(std::min(kTries, values.size()));
        if (!std::all_of(values.begin(), tried, add)) continue;
        std::for_each(tried, values.end(), add);
        PictureLook look = inspect_files(*picture_files(std::move(listing)));
        if (look.has_pictures())
          return NamedPictures{column, name.empty() ? "" : folder, extension, std::move(look)};
      }
  }
  const auto column = find_names_of_pictures(table);
  if (!column) return std::nullopt;
  FileListing listing;
  for (const std::string& value : table.columns[*column].values)
    listing.files.push_back(list_file(path_in(beside, value)));
  return NamedPictures{*column, "", "", inspect_files(*picture_files(std::move(listing)))};
}

namespace {

/// Analyzes the folder of a split other than training.
InspectedPictures::Split inspect_split(const std::string& path) {
  if (path.empty()) return {};
  return {path, inspect_files(*picture_files(list_pictures(path)))};
}

/// Counts the images of each class in a folder.
std::vector<int64_t> count_classes(const std::string& folder, const PictureClasses& list,
                                   const std::vector<bool>& is_bad) {
  std::vector<int64_t> counts(list.class_names.size(), 0), files = counts;
  for (size_t i = 0; i < list.classes.size(); ++i) {
    const auto number = static_cast<size_t>(list.classes[i]);
    ++files[number];
    if (!is_bad[i]) ++counts[number];
  }
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] == 0)
      throw UserError(fmt::format("{}: expected images (JPEG, PNG, BMP), found none in {}",
                                  path_in(folder, list.class_names[i]), format_plural(files[i], "file")));
  return counts;
}

}  // namespace

InspectedPictures inspect_pictures(const std::string& folder) {
  InspectedPictures looked;
  std::string train = split_called(folder, kTrainFolders);
  if (!train.empty()) {
    looked.validation = inspect_split(split_called(folder, kValidationFolders));
    looked.test = inspect_split(split_called(folder, kTestFolders));
    // No folder of a split was found. The folder may still contain a class called "train", for example next
    // to a class "bus".
  } else {
    if (has_flat_splits(folder))
      throw UserError(
          fmt::format("{}: expected a folder of images for each class, but the split folders (such as train) "
                      "contain no class folders",
                      folder));
    train = folder;
  }
  const PictureClasses list = list_classes(train, {});
  if (list.class_names.size() < 2)
    throw UserError(
        fmt::format("{}: expected a folder of images for each class, found a single class", train));
  std::vector<bool> is_bad;
  looked.train = {train, inspect_files(*picture_files(list.files), &is_bad)};
  if (!looked.train.look.has_pictures())
    throw UserError(fmt::format("{}: expected images (JPEG, PNG, BMP), found none", train));
  looked.classes = list.class_names;
  looked.counts = count_classes(train, list, is_bad);
  looked.warning = warning_of_splits(train, list.class_names);
  return looked;
}

}  // namespace dtrain
