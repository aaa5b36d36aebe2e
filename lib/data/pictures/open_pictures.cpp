#include "data/pictures/open_pictures.h"

#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "base/paths.h"

namespace dtrain {

PictureForm picture_form(const PictureOptions& options, const TensorSpec& input) {
  const Shape& shape = input.shape;
  const bool is_picture =
      shape.rank() == 2 || (shape.rank() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4));
  if (!is_picture && (!options.size || !options.channels))
    throw UserError(fmt::format("images: give size and channels; the input '{}' of shape {} says neither",
                                input.name, shape.str()));
  PictureForm form;
  form.height = options.size ? options.size->height : shape[0];
  form.width = options.size ? options.size->width : shape[1];
  form.channels = static_cast<int>(options.channels ? *options.channels : shape.rank() == 2 ? 1 : shape[2]);
  form.resize = options.resize;
  if (form.height > kMostArrayElements / form.width / form.channels)
    throw UserError(fmt::format("images: expected a size of at most {} bytes a picture, found {} x {} x {}",
                                kMostArrayElements, form.height, form.width, form.channels));
  return form;
}

SourceColumns open_pictures(PictureList list, const PictureOptions& options, const TensorSpec& input) {
  const PictureForm form = picture_form(options, input);
  check_pictures(list, form, options.on_error);
  const auto kept = std::make_shared<const PictureList>(std::move(list));
  SourceColumns source({picture_column(kept->folder, kept, form)});
  const auto count = static_cast<int64_t>(kept->files.size());
  if (!kept->classes.empty()) {
    const auto bytes = static_cast<size_t>(count) * sizeof(int32_t);
    const auto labels = allocate_bytes(bytes);
    std::memcpy(labels.get(), kept->classes.data(), bytes);
    source.columns.push_back(
        std::make_shared<MemoryColumn>(TensorSpec{kept->folder, Shape{}, DType::int32}, count, labels));
    source.facts.class_names["target"] = kept->class_names;
  }
  std::vector<std::string> paths;
  for (size_t i = 0; i < kept->files.size(); ++i) paths.push_back(kept->path(i));
  source.names = text_column("path", paths);
  if (kept->skipped > 0)
    source.warnings.push_back(
        fmt::format("{}: {} of {} files were left out, which are no whole pictures; the first: {}",
                    kept->folder, kept->skipped, kept->skipped + count, kept->first_skipped));
  return source;
}

SourceColumns open_pictures_at(const std::string& path, const PictureOptions& options,
                               const TensorSpec& input) {
  if (look_at(path) == Standing::directory) return open_pictures(list_pictures(path), options, input);
  return open_pictures(PictureList{"", {list_file(path)}, {}, {}, 0, ""}, options, input);
}

}  // namespace dtrain
