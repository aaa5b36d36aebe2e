// Opens the files passed to `dtrain predict` and `dtrain evaluate`.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files/paths.h"
#include "config/diagnostics.h"
#include "data/caches/cache.h"
#include "data/chained_dataset.h"
#include "data/given_file.h"
#include "data/opening.h"
#include "data/pictures/open_pictures.h"
#include "data/pictures/tar_index.h"
#include "data/pictures/tar_pictures.h"
#include "data/readers/arrays/array_file.h"
#include "data/readers/open_any.h"
#include "data/readers/reader.h"
#include "data/splits/time_split.h"

namespace dtrain {

namespace {

/// The arguments of open_inputs() and open_labeled().
struct Wanted {
  const DatasetSpec& spec;
  const std::vector<TensorSpec>& inputs;
  const std::vector<TensorSpec>* targets;  // null for predictions, which need no targets and no weights
  const TextOptions& options;
};

/// One file, or consecutive image files that are opened together.
struct Group {
  const GivenFile& file;
  std::vector<std::string> pictures;  // paths of two or more images; empty if `file` is the only one
};

/// Returns the format of the run's own csv reader, overridden by `options`.
CsvFormat text_format(const DatasetSpec& spec, const TextOptions& options) {
  CsvFormat format{',', std::nullopt};
  for (const char* name : {"test", "validation", "train"})
    if (const SplitSpec* split = spec.find(name)) format = split->reader->text_format().value_or(format);
  if (options.header) format.header = options.header;
  if (options.delimiter) format.delimiter = *options.delimiter;
  return format;
}

/// Returns the options of the run's own image reader; defaults if the run has no image reader.
PictureOptions picture_options(const DatasetSpec& spec) {
  PictureOptions options;
  for (const char* name : {"test", "validation", "train"})
    if (const SplitSpec* split = spec.find(name))
      options = split->reader->picture_options().value_or(options);
  return options;
}

/// Returns the names of the readers that the splits use.
std::vector<std::string> readers_of(const DatasetSpec& spec) {
  std::vector<std::string> readers;
  for (const char* name : kSplitNames)
    if (const SplitSpec* split = spec.find(name);
        split && std::find(readers.begin(), readers.end(), split->reader.name) == readers.end())
      readers.push_back(split->reader.name);
  return readers;
}

/// Throws UserError for an image or a folder if the run has no image reader and the shape of the input cannot
/// be the shape of an image.
void reject_pictures(const std::string& path, const DatasetSpec& spec, const TensorSpec& input) {
  bool takes_pictures = input.shape.rank() == 2 || input.shape.rank() == 3;
  for (const char* name : kSplitNames)
    if (const SplitSpec* split = spec.find(name))
      takes_pictures = takes_pictures || split->reader->picture_options();
  if (takes_pictures) return;
  const std::vector<std::string> readers = readers_of(spec);
  throw UserError(fmt::format(
      "{}: expected a file{}, but found {}", path,
      readers.empty() ? " with the values of the input"
                      : fmt::format(" that the run's reader {} can read", fmt::join(readers, " or ")),
      file_type(path) == FileType::directory ? "a directory" : "an image"));
}

/// Opens a file that holds the arrays of the inputs. The run's own reader is not used.
SourceColumns open_arrays(const Group& group, const DatasetSpec& spec, const std::vector<TensorSpec>& inputs,
                          const TextOptions& text) {
  const GivenFile& file = group.file;
  const std::string& path = file.path();
  const FileFormat format = file.format();
  if (format == FileFormat::other)
    throw UserError(fmt::format("{}: unknown file format; expected {}", path, kGivenFiles));
  if (format == FileFormat::hdf5 && inputs.size() > 1) {
    Columns columns;
    for (const TensorSpec& one : inputs) columns.push_back(open_hdf5(path, one.name));
    return SourceColumns(std::move(columns));
  }
  if (inputs.size() != 1)
    throw UserError(fmt::format(
        "{}: the model has {} inputs, so the file must be an HDF5 file with one dataset for each input", path,
        inputs.size()));
  switch (format) {
    case FileFormat::hdf5:
      return SourceColumns({open_hdf5(path, "")});
    case FileFormat::npy:
      return SourceColumns({open_npy(path)});
    case FileFormat::idx:
      return SourceColumns({open_idx(path)});
    case FileFormat::tar:
      return open_pictures({path, list_tar_samples({path}, "").pictures, {}}, picture_options(spec),
                           inputs[0]);
    case FileFormat::picture:
      reject_pictures(path, spec, inputs[0]);
      return open_pictures_at(group.pictures.empty() ? std::vector{path} : group.pictures,
                              picture_options(spec), inputs[0]);
    default:
      return SourceColumns({open_csv(path, inputs[0].dtype == DType::int32 ? DType::int32 : DType::float32,
                                     text_format(spec, text), spec.facts.source.fields.inputs)});
  }
}

/// Returns the arrays of JSON lines as columns, one for each spec of `expected`, in this order. The keys of
/// the lines must be the names of the specs. If only one column is expected, the lines may also be arrays
/// without keys. Throws UserError if the keys do not match.
SourceColumns open_json_arrays(const GivenFile& file, const std::vector<TensorSpec>& expected) {
  const std::vector<GivenArray>& arrays = file.arrays();
  const std::vector<std::string> names = spec_names(expected);
  const bool has_names = !arrays.front().name.empty();
  if (!has_names && names.size() != 1)
    throw UserError(
        fmt::format("{}: each line must be an object with the keys '{}', but the lines are arrays",
                    file.name(), fmt::join(names, "', '")));
  for (const GivenArray& array : arrays)
    if (has_names && std::find(names.begin(), names.end(), array.name) == names.end())
      throw UserError(fmt::format("{}: expected '{}' in each line, found the unknown key '{}'{}", file.name(),
                                  fmt::join(names, "', '"), array.name, suggestion(array.name, names)));
  Columns columns;
  for (const std::string& name : names) {
    const auto array = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const GivenArray& one) { return !has_names || one.name == name; });
    if (array == arrays.end())
      throw UserError(fmt::format("{}: each line must have the keys '{}', but the key '{}' is missing",
                                  file.name(), fmt::join(names, "', '"), name));
    columns.push_back(rows_in_file(std::make_shared<InputFile>(array->file.path()), file.name(),
                                   {array->type, array->shape}, 0));
  }
  return SourceColumns(std::move(columns));
}

[[noreturn]] void reject_unlabeled(const GivenFile& file, const DatasetSpec& spec) {
  throw UserError(
      fmt::format("{}: expected a file that contains both inputs and targets and that the run's reader {} "
                  "can read; if inputs and targets are in separate files, name the files in a split: --set "
                  "'dataset.test=...' --split test",
                  file.path(), fmt::join(readers_of(spec), " or ")));
}

/// The columns of an opened file, and the split whose reader opened the file. If no reader opened the file,
/// `split` is the first split.
struct Opened {
  SourceColumns source;
  const SplitSpec* split;
};

/// Opens the files with a reader of the run that supports their format. The reader of the training split is
/// tried first. If no reader supports the format, opens the arrays directly, without a reader. In this case,
/// only JSON lines can contain targets.
Opened open_as_run(const Group& group, const Wanted& wanted) {
  const GivenFile& file = group.file;
  const DatasetSpec& spec = wanted.spec;
  const TextOptions text = file.text_options(wanted.options);
  ReadRequest request{spec.root,
                      {},
                      before_transforms(wanted.inputs, false, spec.transforms),
                      {},
                      spec.facts.source,
                      wanted.targets ? FileUse::evaluation : FileUse::prediction};
  const SplitSpec* first = nullptr;
  for (const char* name : kSplitNames) {
    const SplitSpec* split = spec.find(name);
    if (!split) continue;
    if (!first) first = split;
    request.windows = split->windows ? &*split->windows : nullptr;
    request.inputs =
        before_transforms(rows_of_windows(split->windows, wanted.inputs, false), false, spec.transforms);
    if (wanted.targets)
      request.targets =
          before_transforms(rows_of_windows(split->windows, split->targets_to_read(*wanted.targets), true),
                            true, spec.transforms);
    if (!file.arrays().empty()) break;
    if (auto source = split->reader->open_other(file.path(), file.format(), text, request))
      return {*std::move(source), split};
  }
  if (!file.arrays().empty()) {
    std::vector<TensorSpec> expected = request.inputs;
    expected.insert(expected.end(), request.targets.begin(), request.targets.end());
    return {open_json_arrays(file, expected), first};
  }
  if (!request.targets.empty()) reject_unlabeled(file, spec);
  return {open_arrays(group, spec, request.inputs, text), first};
}

std::shared_ptr<const Dataset> open_group(const Group& group, const Wanted& wanted) {
  auto held = std::make_shared<CachedColumns>();
  const SplitSpec* split = nullptr;
  group.file.with_names([&] {
    Opened opened = at_place({}, [&] { return open_as_run(group, wanted); });
    static_cast<SourceColumns&>(*held) = std::move(opened.source);
    split = opened.split;
    held->total = held->columns.front()->size();
    for (const auto& column : held->columns)
      if (column->size() != held->total)
        throw UserError(fmt::format(
            "{}: all inputs and targets must have the same number of samples, but found {} and {}",
            group.file.path(), held->total, column->size()));
  });
  DataSource source{"", {group.file.path()}, wanted.spec.facts, 0, held->total};
  const auto windows = split ? split->windows : std::nullopt;
  const std::vector<TensorSpec> inputs = rows_of_windows(windows, wanted.inputs, false);
  if (windows)
    group.file.with_names([&] {
      source.windows =
          windows_of_file(*windows, *held, group.file.path(), inputs.size(),
                          wanted.targets ? wanted.targets->size() : 0, wanted.targets != nullptr);
    });
  ColumnPlanner planner(wanted.spec, *held, source, {}, Purpose::prediction);
  planner.add_inputs(inputs);
  if (wanted.targets) {
    planner.add_targets(rows_of_windows(windows, *wanted.targets, true), *split, inputs);
    if (held->weights) planner.add_weights();
  }
  return std::make_shared<SplitDataset>(held, std::move(planner.plans), std::move(source), MixPlan(),
                                        std::move(planner.columns));
}

/// Groups the files in order; consecutive images form one group.
std::vector<Group> group_files(const GivenFiles& files) {
  std::vector<Group> groups;
  bool was_picture = false;
  for (const GivenFile& file : files) {
    const bool is_picture = file.format() == FileFormat::picture && file_type(file.path()) == FileType::file;
    if (is_picture && was_picture) {
      auto& pictures = groups.back().pictures;
      if (pictures.empty()) pictures.push_back(groups.back().file.path());
      pictures.push_back(file.path());
    } else {
      groups.push_back({file, {}});
    }
    was_picture = is_picture;
  }
  return groups;
}

std::shared_ptr<const Dataset> open_all(const GivenFiles& files, const Wanted& wanted) {
  std::vector<std::shared_ptr<const Dataset>> parts;
  for (const Group& group : group_files(files)) parts.push_back(open_group(group, wanted));
  return chain_datasets(std::move(parts));
}

}  // namespace

std::shared_ptr<const Dataset> open_inputs(const GivenFiles& files, const DatasetSpec& spec,
                                           const std::vector<TensorSpec>& inputs,
                                           const TextOptions& options) {
  return open_all(files, {spec, inputs, nullptr, options});
}

std::shared_ptr<const Dataset> open_labeled(const GivenFiles& files, const DatasetSpec& spec,
                                            const std::vector<TensorSpec>& inputs,
                                            const std::vector<TensorSpec>& targets,
                                            const TextOptions& options) {
  return open_all(files, {spec, inputs, &targets, options});
}

}  // namespace dtrain
