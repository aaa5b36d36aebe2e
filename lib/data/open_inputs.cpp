// Opens the inputs that `dtrain predict` is given.
#include <filesystem>

#include <fmt/format.h>

#include "data/cache.h"
#include "data/input_file.h"
#include "data/opening.h"
#include "data/pictures/open_pictures.h"
#include "data/pictures/tar_index.h"
#include "data/pictures/tar_pictures.h"
#include "data/readers/csv_text.h"
#include "data/readers/open_any.h"
#include "data/readers/reader.h"

namespace dtrain {

namespace {

/// What the first bytes (unpacked) say.
FileFormat format_of(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return FileFormat::picture;
  InputStream stream(path);
  std::string start(512, '\0');
  start.resize(stream.read(start.data(), start.size()));
  refuse_parquet(path, start);
  if (start.starts_with("\x89HDF\r\n\x1a\n")) return FileFormat::hdf5;
  if (start.starts_with("\x93NUMPY")) return FileFormat::npy;
  if (is_picture_file({reinterpret_cast<const uint8_t*>(start.data()), start.size()}))
    return FileFormat::picture;
  if (is_tar_file(start)) return FileFormat::tar;
  if (start.size() >= 4 && start[0] == 0 && start[1] == 0) return FileFormat::idx;
  if (!start.empty() && start.find('\0') == std::string::npos) return FileFormat::text;
  if (start.empty())
    throw UserError(
        fmt::format("{}: expected an HDF5, .npy, csv or IDX file, a picture, or a folder or tar archive of "
                    "pictures, found an empty one",
                    path));
  return FileFormat::other;
}

/// As the run's own csv reader has it, but for what the options say.
CsvFormat text_format(const DatasetSpec& spec, const TextOptions& options) {
  CsvFormat format{',', std::nullopt};
  for (const char* name : {"test", "validation", "train"})
    if (const SplitSpec* split = spec.find(name)) format = split->reader->text_format().value_or(format);
  if (options.header) format.header = options.header;
  if (options.delimiter) format.delimiter = *options.delimiter;
  return format;
}

/// As the run's own reader of pictures has it; else the model's input decides all.
PictureOptions picture_options(const DatasetSpec& spec) {
  PictureOptions options;
  for (const char* name : {"test", "validation", "train"})
    if (const SplitSpec* split = spec.find(name))
      options = split->reader->picture_options().value_or(options);
  return options;
}

/// A file that holds the arrays as they are, whatever the run reads.
SourceColumns open_arrays(const std::string& path, FileFormat format, const DatasetSpec& spec,
                          const std::vector<TensorSpec>& wanted, const TextOptions& options) {
  if (format == FileFormat::other)
    throw UserError(
        fmt::format("{}: expected an HDF5, .npy, csv or IDX file, a picture, or a folder or tar archive of "
                    "pictures, found none of these",
                    path));
  Columns columns;
  if (format == FileFormat::hdf5 && wanted.size() > 1) {
    for (const TensorSpec& one : wanted) columns.push_back(open_hdf5(path, one.name));
    return SourceColumns(std::move(columns));
  }
  if (wanted.size() != 1)
    throw UserError(fmt::format("{}: expected an HDF5 file with a dataset for each of the model's {} inputs",
                                path, wanted.size()));
  switch (format) {
    case FileFormat::hdf5:
      return SourceColumns({open_hdf5(path, "")});
    case FileFormat::npy:
      return SourceColumns({open_npy(path)});
    case FileFormat::idx:
      return SourceColumns({open_idx(path)});
    case FileFormat::tar:
      return open_pictures({path, list_tar_samples({path}, "").pictures, {}}, picture_options(spec),
                           wanted[0]);
    case FileFormat::picture:
      return open_pictures_at(path, picture_options(spec), wanted[0]);
    default:
      return SourceColumns({open_csv(path, wanted[0].dtype == DType::int32 ? DType::int32 : DType::float32,
                                     text_format(spec, options), spec.facts.source.fields.inputs)});
  }
}

/// By the run's own reader, where that reads such files: of the training split, or else of another.
SourceColumns open_as_run(const std::string& path, const DatasetSpec& spec,
                          const std::vector<TensorSpec>& wanted, const TextOptions& options) {
  const FileFormat format = format_of(path);
  if (format != FileFormat::text && (options.header || options.delimiter))
    throw UserError(
        fmt::format("{}: expected text, as a header or a delimiter was given, found another format", path));
  const ReadRequest request{spec.root, {}, wanted, {}, spec.facts.source, true};
  for (const char* name : kSplitNames)
    if (const SplitSpec* split = spec.find(name))
      if (auto source = split->reader->open_inputs(path, format, options, request)) return *std::move(source);
  return open_arrays(path, format, spec, wanted, options);
}

}  // namespace

std::shared_ptr<const Dataset> open_inputs(const std::string& path, const DatasetSpec& spec,
                                           const std::vector<TensorSpec>& inputs,
                                           const TextOptions& options) {
  auto held = std::make_shared<CachedColumns>();
  static_cast<SourceColumns&>(*held) = at_place({}, [&] {
    return open_as_run(path, spec, before_transforms(inputs, false, spec.transforms), options);
  });
  held->total = held->columns.front()->size();
  for (const auto& column : held->columns)
    if (column->size() != held->total)
      throw UserError(fmt::format("{}: expected as many samples for each input, found {} and {}", path,
                                  held->total, column->size()));
  DataSource source{"", {path}, spec.facts, 0, held->total};
  ColumnPlanner planner(spec, *held, source, {}, Purpose::prediction);
  planner.add_inputs(inputs);
  return std::make_shared<SplitDataset>(held, std::move(planner.plans), std::move(source));
}

}  // namespace dtrain
