#include "data/pictures/open_pictures.h"

#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
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

/// Drops all other rows of the known columns.
void keep_rows(SourceColumns& source, const std::vector<int64_t>& rows) {
  for (auto& column : source.columns) column = only(column, rows);
  for (auto* column : {&source.weights, &source.names})
    if (*column) *column = only(*column, rows);
}

}  // namespace

PictureSet picture_set(FileListing files) {
  std::string where = files.folder;
  return {std::move(where), picture_files(std::move(files)), {}};
}

PictureSet picture_set(PictureClasses classes) {
  const size_t bytes = classes.classes.size() * sizeof(int32_t);
  const auto labels = allocate_bytes(bytes);
  std::memcpy(labels.get(), classes.classes.data(), bytes);
  PictureSet set = picture_set(std::move(classes.files));
  set.known.columns.push_back(std::make_shared<MemoryColumn>(TensorSpec{set.where, Shape{}, DType::int32},
                                                             set.pictures->size(), labels));
  set.known.facts.class_names["target"] = std::move(classes.class_names);
  return set;
}

PictureForm picture_form(const PictureOptions& options, const TensorSpec& input) {
  const Shape& shape = input.shape;
  const bool is_picture =
      shape.rank() == 2 || (shape.rank() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4));
  if (!is_picture && (!options.size || !options.channels))
    throw UserError(
        fmt::format("images: give size and channels; they cannot be taken from the input '{}' of shape {}",
                    input.name, shape.str()));
  PictureForm form;
  form.height = options.size ? options.size->height : shape[0];
  form.width = options.size ? options.size->width : shape[1];
  form.channels = static_cast<int>(options.channels ? *options.channels : shape.rank() == 2 ? 1 : shape[2]);
  form.resize = options.resize;
  if (form.height > kMostArrayElements / form.width / form.channels)
    throw UserError(fmt::format("images: expected at most {} bytes per image, found {} x {} x {}",
                                kMostArrayElements, form.height, form.width, form.channels));
  return form;
}

SourceColumns open_pictures(PictureSet set, const PictureOptions& options, const TensorSpec& input) {
  const PictureForm form = picture_form(options, input);
  CheckedPictures checked = check_pictures(*set.pictures, set.where, form, options.on_error, set.can_skip);
  SourceColumns source = std::move(set.known);
  if (checked.skipped > 0) keep_rows(source, checked.kept);
  if (!source.names) {
    std::vector<std::string> names;
    for (const int64_t i : checked.kept) names.push_back(set.pictures->name(i));
    source.names = text_column("path", names);
  }
  if (checked.skipped > 0)
    source.warnings.push_back(fmt::format(
        "{}: {} of {} files were left out, because they are not complete images; the first: {}", set.where,
        checked.skipped, static_cast<size_t>(checked.skipped) + checked.kept.size(), checked.first_skipped));
  source.columns.insert(source.columns.begin(),
                        picture_column(set.where, set.pictures, std::move(checked), form));
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
