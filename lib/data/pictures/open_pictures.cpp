#include "data/pictures/open_pictures.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "data/loader/parallel.h"
#include "data/pictures/picture_column.h"
#include "data/pictures/picture_files.h"

namespace dtrain {

namespace {

std::shared_ptr<const Column> only(const std::shared_ptr<const Column>& column,
                                   const std::vector<int64_t>& rows) {
  const auto data = allocate_bytes(rows.size() * column->row_bytes());
  column->read(rows, data.get());
  return std::make_shared<MemoryColumn>(column->spec(), static_cast<int64_t>(rows.size()), data);
}

/// Removes all rows except `rows` from all columns.
void keep_rows(SourceColumns& source, const std::vector<int64_t>& rows) {
  for (auto& column : source.columns) column = only(column, rows);
  for (auto* column : {&source.weights, &source.names})
    if (*column) *column = only(*column, rows);
}

/// Keeps only the images whose index is in both images.kept and targets.kept. Throws UserError if no image
/// remains.
void keep_pairs(CheckedPictures& images, CheckedPictures& targets, const PictureSet& set) {
  std::vector<int64_t> both;
  std::set_intersection(images.kept.begin(), images.kept.end(), targets.kept.begin(), targets.kept.end(),
                        std::back_inserter(both));
  if (images.first_skipped.empty()) images.first_skipped = targets.first_skipped;
  if (both.empty())
    throw UserError(fmt::format("{}: no pair of an image and its target could be read; the first error: {}",
                                set.where, images.first_skipped));
  images.skipped = set.pictures->size() - static_cast<int64_t>(both.size());
  images.kept = targets.kept = std::move(both);
}

/// Throws UserError if the size of a mask differs from the size of its image, or if a mask is a JPEG.
void check_mask_sizes(const PictureSet& set, const std::vector<int64_t>& kept) {
  std::vector<std::string> problems(kept.size());
  const std::optional<MaskClasses>& classes = set.targets->row.classes;
  const char* const formats = classes && classes->are_numbers() ? "PNG" : "PNG or BMP";
  run_blocks(static_cast<int64_t>(kept.size()), [&](int64_t i) {
    const int64_t number = kept[static_cast<size_t>(i)];
    const PictureHeader image = header_of_picture(*set.pictures, number),
                        mask = header_of_picture(*set.targets->pictures, number);
    std::string& problem = problems[static_cast<size_t>(i)];
    const std::string name = set.targets->pictures->name(number);
    if (!mask.exact)
      problem = fmt::format(
          "{}: expected a mask as a {} file, but found a JPEG file; JPEG compression changes the values of "
          "pixels",
          name, formats);
    else if (image.height != mask.height || image.width != mask.width)
      problem =
          fmt::format("{}: the mask must have {} x {} pixels like its image {}, but has {} x {} pixels", name,
                      image.width, image.height, set.pictures->name(number), mask.width, mask.height);
  });
  const auto is_problem = [](const std::string& text) { return !text.empty(); };
  const auto first = std::find_if(problems.begin(), problems.end(), is_problem);
  if (first != problems.end())
    throw UserError(*first + describe_others(std::count_if(first, problems.end(), is_problem) - 1,
                                             "cannot be used as masks", false));
}

/// Returns the target column of a set. `images` contains the checked images of the set. With OnError::skip,
/// images whose target is unreadable are removed from `images`.
std::shared_ptr<const Column> target_column(const PictureSet& set, OnError on_error,
                                            CheckedPictures& images) {
  const TargetPictures& targets = *set.targets;
  CheckedPictures checked =
      check_pictures(*targets.pictures, targets.where, targets.row, on_error, set.can_skip);
  keep_pairs(images, checked, set);
  if (targets.row.classes) check_mask_sizes(set, images.kept);
  return picture_column(targets.where, targets.pictures, std::move(checked), targets.row);
}

}  // namespace

PictureSet picture_set(FileListing files) {
  std::string where = files.folder;
  return {std::move(where), picture_files(std::move(files)), {}};
}

PictureSet picture_set(PictureClasses classes) {
  const auto labels = class_column(classes);
  PictureSet set = picture_set(std::move(classes.files));
  set.known.columns.push_back(labels);
  set.known.facts.class_names["target"] = std::move(classes.class_names);
  return set;
}

PictureForm picture_form(const PictureOptions& options, const TensorSpec& input) {
  const Shape& shape = input.shape;
  const bool is_picture =
      shape.rank() == 2 || (shape.rank() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4));
  if (!is_picture && (!options.size || !options.channels))
    throw UserError(
        fmt::format("images: the size and the channels are not set and cannot be taken from the input '{}' "
                    "of shape {}; set the options size and channels",
                    input.name, shape.str()));
  PictureForm form;
  form.height = options.size ? options.size->height : shape[0];
  form.width = options.size ? options.size->width : shape[1];
  form.channels = static_cast<int>(options.channels ? *options.channels : shape.rank() == 2 ? 1 : shape[2]);
  form.resize = options.resize;
  if (form.height > kMostArrayElements / form.width / form.channels)
    throw UserError(fmt::format(
        "images: an image may have at most {} bytes, but the options give {} x {} pixels of {} bytes",
        kMostArrayElements, form.height, form.width, form.channels));
  return form;
}

SourceColumns open_pictures(PictureSet set, const PictureOptions& options, const TensorSpec& input) {
  const PictureRow row{picture_form(options, input)};
  CheckedPictures checked = check_pictures(*set.pictures, set.where, row, options.on_error, set.can_skip);
  const auto targets = set.targets ? target_column(set, options.on_error, checked) : nullptr;
  SourceColumns source = std::move(set.known);
  if (checked.skipped > 0) keep_rows(source, checked.kept);
  if (!source.names) {
    std::vector<std::string> names;
    for (const int64_t i : checked.kept) names.push_back(set.pictures->name(i));
    source.names = text_column("path", names);
  }
  if (checked.skipped > 0)
    source.warnings.push_back(fmt::format(
        "{}: {} of {} files were left out because they cannot be used; the first error: {}", set.where,
        checked.skipped, static_cast<size_t>(checked.skipped) + checked.kept.size(), checked.first_skipped));
  if (targets) source.columns.insert(source.columns.begin(), targets);
  source.columns.insert(source.columns.begin(),
                        picture_column(set.where, set.pictures, std::move(checked), row));
  return source;
}

SourceColumns open_pictures_at(const std::vector<std::string>& paths, const PictureOptions& options,
                               const TensorSpec& input) {
  const std::string& path = paths.front();
  if (paths.size() == 1 && file_type(path) == FileType::directory)
    return open_pictures(picture_set(list_pictures(path)), options, input);
  PictureSet set = picture_set(FileListing{"", list_files(paths)});
  set.where = path;
  return open_pictures(std::move(set), options, input);
}

}  // namespace dtrain
