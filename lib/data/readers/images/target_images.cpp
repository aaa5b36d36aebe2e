#include "data/readers/images/target_images.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/name_list.h"
#include "data/located_error.h"
#include "data/pictures/picture_files.h"
#include "data/pictures/picture_list.h"
#include "data/readers/images/picture_fields.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

using FilesByName = std::map<std::string, ListedFile>;

/// Returns the images below a folder, indexed by their relative paths without extensions.
FilesByName files_by_name(const std::string& folder) {
  FilesByName all;
  for (ListedFile& file : list_pictures(folder).files) {
    const size_t dot = file.path.rfind('.'), slash = file.path.rfind('/');
    const bool has_extension = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
    const std::string name = has_extension ? file.path.substr(0, dot) : file.path;
    const auto [first, is_new] = all.emplace(name, file);
    if (!is_new)
      throw UserError(fmt::format("{}: expected one image called '{}', found {} and {}", folder, name,
                                  first->second.path, file.path));
  }
  return all;
}

/// Returns a message about the names of `files` that are missing in `others`; "" if none is missing.
std::string describe_missing(const std::string& folder, const FilesByName& files,
                             const std::string& other_folder, const FilesByName& others,
                             const char* partner) {
  std::vector<std::string> missing;
  for (const auto& [name, file] : files)
    if (!others.contains(name)) missing.push_back(file.path);
  if (missing.empty()) return "";
  return fmt::format("{}: each file must have {} of the same name in {}, but there is none for {}; ", folder,
                     partner, other_folder, list_some(missing, 10));
}

/// Returns `size` times `wanted` / `input`, which must be a whole number.
int64_t scaled(int64_t size, int64_t wanted, int64_t input, const ReadRequest& request) {
  if (size * wanted % input != 0)
    request.fail(
        fmt::format("target_images: give `size: [height, width]`. The size of the targets cannot be computed "
                    "from the images: along one axis, the model's input has {0} pixels, its output has {1} "
                    "pixels and the images have {2} pixels, but {2} * {1} / {0} is not a whole number",
                    input, wanted, size));
  return size * wanted / input;
}

bool has_folder(const std::string& folder, const fs::path& name) {
  return file_type(path_in(folder, name.string())) == FileType::directory;
}

/// Returns two paths without the leading folders that they share. If no part of a path would remain, returns
/// only the last part of both paths.
std::pair<fs::path, fs::path> without_common_start(const std::string& one, const std::string& other) {
  const auto normal = [](const fs::path& path) {  // the path without a slash at the end
    return path.has_filename() ? path.lexically_normal() : path.parent_path().lexically_normal();
  };
  const fs::path first = normal(one), second = normal(other);
  const auto [a, b] = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
  std::pair<fs::path, fs::path> rest;
  for (auto part = a; part != first.end(); ++part) rest.first /= *part;
  for (auto part = b; part != second.end(); ++part) rest.second /= *part;
  const bool differ = !rest.first.empty() && !rest.second.empty();
  if (differ && rest.first.is_relative() && rest.second.is_relative()) return rest;
  return {first.filename(), second.filename()};
}

}  // namespace

const Schema<TargetImages>& TargetImages::schema() {
  static const auto all = [] {
    Schema<TargetImages> schema(
        "Targets that are images: masks, whose pixels represent classes, or images whose pixel values the "
        "model predicts.");
    schema
        .optional("directory", &TargetImages::directory,
                  "the folder of the target images. A target image has the same name as its input image in "
                  "the reader's `directory`, apart from the extension")
        .optional(
            "classes", &TargetImages::classes,
            "for masks: the meaning of the pixels. With `numbers`, the pixel values of a PNG (gray levels or "
            "palette indices) are class numbers. A list has the gray level or the color of each class, in "
            "the order of the class numbers, such as [0, 255] or [\"#000000\", \"#ff8000\"]. Without this "
            "option, the targets are not masks but images with values from 0 to 255")
        .optional("size", &TargetImages::size,
                  "[height, width] of the target images. Default: the size of the model's target or, if the "
                  "model accepts images of any size, the size of the input images")
        .optional("channels", &TargetImages::channels,
                  "1 (grayscale), 3 (RGB) or 4 (RGB and alpha); not for masks. Default: the channels of the "
                  "model's target",
                  picture_channels())
        .rule([](const TargetImages& options, const ConfigNode& node, Diagnostics& diagnostics) {
          if (options.classes && options.channels)
            diagnostics.error(*node.find("channels"),
                              "target_images: masks ('classes') have no channels; leave 'channels' out");
        })
        .positional("directory");
    return schema;
  }();
  return all;
}

PictureRow target_row(const TargetImages& options, const PictureForm& image, const ReadRequest& request) {
  const Shape &input = request.inputs[0].shape, &target = request.targets[0].shape;
  PictureRow row{image, options.classes};
  if (target.rank() == 2 || target.rank() == 3)
    row.form.channels = target.rank() == 3 ? static_cast<int>(target[2]) : 1;
  if (options.channels) row.form.channels = static_cast<int>(*options.channels);
  if (options.classes) {
    row.form.is_mask = true;
    row.form.channels = options.classes->are_numbers() ? 1 : 3;
    row.form.fill = options.classes->are_numbers() ? 0 : options.classes->colors[0];
  }
  if (options.size) {
    row.form.height = options.size->height;
    row.form.width = options.size->width;
  } else if (target.rank() >= 2 && input.rank() >= 2) {
    row.form.height = scaled(image.height, target[0], input[0], request);
    row.form.width = scaled(image.width, target[1], input[1], request);
  }
  const int kinds = row.form.channels;
  if (kinds != 1 && kinds != 3 && kinds != 4)
    request.fail(
        fmt::format("target_images: expected a target with 1, 3 or 4 channels, but the model's target {} has "
                    "{}; give 'classes' if the images are masks",
                    target.str(), kinds));
  if (row.form.height > kMostArrayElements / row.form.width / row.form.channels)
    request.fail(
        fmt::format("target_images: expected at most {} bytes per image, found {} x {} pixels of {} bytes",
                    kMostArrayElements, row.form.height, row.form.width, row.form.channels));
  return row;
}

NameCounts count_names(const std::string& folder, const std::string& target_folder) {
  const FilesByName images = files_by_name(folder), targets = files_by_name(target_folder);
  NameCounts counts;
  for (const auto& [name, file] : images) counts.shared += targets.contains(name) ? 1 : 0;
  counts.all = static_cast<int64_t>(images.size() + targets.size()) - counts.shared;
  return counts;
}

PictureSet list_pairs(const std::string& folder, const std::string& target_folder) {
  FilesByName images, targets;
  ErrorCollector errors;
  errors.attempt({}, [&] { images = files_by_name(folder); });
  errors.attempt({}, [&] { targets = files_by_name(target_folder); });
  errors.throw_if_errors();
  const std::string problem = describe_missing(folder, images, target_folder, targets, "a target") +
                              describe_missing(target_folder, targets, folder, images, "an image");
  if (!problem.empty())
    throw UserError(problem + "add the missing files, or remove the files that have no counterpart");
  FileListing listed{folder, {}}, listed_targets{target_folder, {}};
  for (const auto& [name, file] : images) {
    listed.files.push_back(file);
    listed_targets.files.push_back(targets.at(name));
  }
  PictureSet set = picture_set(std::move(listed));
  set.targets = TargetPictures{target_folder, picture_files(std::move(listed_targets)), {}};
  return set;
}

PictureSet list_pairs_below(const std::string& folder, const std::string& images,
                            const std::string& targets) {
  auto [image_name, target_name] = without_common_start(images, targets);
  if (!has_folder(folder, image_name) || !has_folder(folder, target_name)) {
    image_name = *image_name.begin();
    target_name = *target_name.begin();
  }
  for (const fs::path& name : {image_name, target_name})
    if (!has_folder(folder, name))
      throw UserError(
          fmt::format("{}: expected the folders '{}' (images) and '{}' (target images), which are named as "
                      "in the run's data set, but the folder '{}' does not exist",
                      folder, image_name.string(), target_name.string(), name.string()));
  return list_pairs(path_in(folder, image_name.string()), path_in(folder, target_name.string()));
}

}  // namespace dtrain
