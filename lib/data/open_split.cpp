// From a checked `dataset:` and the model's wishes to samples.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/paths.h"
#include "data/cache.h"
#include "data/column_transforms.h"
#include "data/dataset_spec.h"
#include "data/folder_listing.h"
#include "data/input_file.h"
#include "data/pictures/open_pictures.h"
#include "data/readers/open_any.h"
#include "data/readers/reader.h"
#include "data/split_dataset.h"

namespace dtrain {

namespace {

/// What the readers should find, for the transforms to make `wanted` of it.
std::vector<TensorSpec> before_transforms(std::vector<TensorSpec> wanted, bool targets,
                                          const std::vector<TransformSpec>& transforms) {
  for (TensorSpec& spec : wanted) spec = transforms_of(spec, targets, transforms).stored;
  return wanted;
}

std::vector<ColumnPlan> plan_columns(const Columns& columns, const std::vector<TensorSpec>& inputs,
                                     const std::vector<TensorSpec>& targets, const DatasetSpec& spec,
                                     bool is_training, const Mark& place) {
  std::vector<ColumnPlan> plans;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool target = i >= inputs.size();
    const TensorSpec& wanted = target ? targets[i - inputs.size()] : inputs[i];
    plans.push_back(
        plan_column(columns[i]->spec(), wanted, target, spec.transforms, {spec.augment, is_training}, place));
  }
  return plans;
}

/// What `augment:` blends. Targets, and the pictures, have to be float32 for that.
MixPlan plan_mixing(const std::vector<ColumnPlan>& plans, size_t inputs, const DatasetSpec& spec) {
  MixPlan mix;
  mix.inputs = inputs;
  for (size_t i = 0; i < spec.augment.size(); ++i) {
    const Configured<Augmentation>& one = spec.augment[i];
    const auto mixing = one->mixing();
    if (!mixing) continue;
    mix.mixings.emplace_back(mixing, augment_stream(i));
    for (size_t column = 0; column < plans.size(); ++column) {
      const TensorSpec& found = plans[column].spec();
      const bool is_blended = column >= inputs || is_picture(found.shape);
      if (is_blended && found.dtype != DType::float32)
        throw UserError(
            located(one.resolved.mark(),
                    fmt::format("{}: expected {} of float32 to blend (classes: the transform one_hot, and a "
                                "loss of class probabilities), found {}",
                                one.name, column < inputs ? "pictures" : "targets", name_of(found.dtype))));
      if (column < inputs && is_blended && mix.picture.rank() == 0) mix.picture = found.shape;
    }
  }
  return mix;
}

SourceColumns open_reader(const Reader& reader, const ReadRequest& request) {
  SourceColumns source = reader.open(request);
  const Column& first = *source.columns.front();
  for (const auto& column : source.columns)
    if (column->size() != first.size())
      request.fail(fmt::format("expected as many samples in each file, found {} in {} and {} in {}",
                               first.size(), first.spec().name, column->size(), column->spec().name));
  return source;
}

/// What shows that a file is another one, or was written to: a time that whoever writes cannot set, too.
std::string fingerprint(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    throw UserError(fmt::format("{}: cannot open the file: {}", path, std::strerror(errno)));
  if (S_ISDIR(status.st_mode)) return fingerprint_of_folder(path);
  return fmt::format("{} {} bytes, inode {}, written {}.{:09}, changed {}.{:09}\n", path, status.st_size,
                     status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

/// The names of the splits that read the same files alike, but for their rows; the first one is their
/// cache's.
std::vector<std::string> splits_like(const DatasetSpec& spec, const SplitSpec& split) {
  std::vector<std::string> names;
  for (const char* name : {"train", "validation", "test"})
    if (const SplitSpec* other = spec.find(name);
        other && other->reader.resolved.to_yaml() == split.reader.resolved.to_yaml())
      names.emplace_back(name);
  return names;
}

std::vector<std::string> paths_of(const SplitSpec& split, const ReadRequest& request) {
  std::vector<std::string> paths;
  for (const std::string& file : split.reader->files()) paths.push_back(request.find(file));
  return paths;
}

/// Splits that differ in their rows only have one key.
CacheKey cache_key(const DatasetSpec& spec, const SplitSpec& split, const ReadRequest& request) {
  const std::vector<std::string> names = splits_like(spec, split);
  CacheKey key{split.reader.resolved.to_yaml(), names.empty() ? "split" : names.front(), split.rows,
               request.facts};
  for (const std::string& name : names) {
    const auto& rows = spec.find(name)->rows;
    if (!key.rows || !rows) {
      key.rows.reset();
      break;
    }
    (*key.rows)[0] = std::min((*key.rows)[0], (*rows)[0]);
    (*key.rows)[1] = std::max((*key.rows)[1], (*rows)[1]);
  }
  for (const std::string& path : paths_of(split, request)) key.identity += fingerprint(path);
  for (const auto* wanted : {&request.inputs, &request.targets})
    for (const TensorSpec& one : *wanted)
      key.identity += fmt::format("{} {} {}\n", one.name, one.shape.str(), name_of(one.dtype));
  if (key.rows) key.identity += fmt::format("rows {} to {}\n", (*key.rows)[0], (*key.rows)[1]);
  return key;
}

/// The tree with numbers in the place of the files' names.
ConfigNode without_names(const ConfigNode& node, const std::vector<std::string>& files) {
  if (node.is_scalar()) {
    const auto found = std::find(files.begin(), files.end(), node.text());
    return found == files.end() ? node : ConfigNode::scalar(fmt::format("file {}", found - files.begin()));
  }
  if (node.is_sequence()) {
    std::vector<ConfigNode> items;
    for (const ConfigNode& item : node.items()) items.push_back(without_names(item, files));
    return ConfigNode::sequence(std::move(items));
  }
  if (!node.is_mapping()) return node;
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [key, value] : node.entries()) entries.emplace_back(key, without_names(value, files));
  return ConfigNode::mapping(std::move(entries));
}

/// What is thrown while files are opened and read for the first time, with the place in the configuration
/// that names them.
template <class Open>
auto at_place(const Mark& place, Open open) {
  try {
    return open();
  } catch (const UserError& error) {
    throw UserError(located(place, error.what()));
  } catch (const Error& error) {
    throw Error(located(place, error.what()));
  } catch (const std::bad_alloc&) {
    throw Error(located(place, "there is not enough memory for the samples"));
  } catch (const std::length_error&) {
    throw Error(located(place, "there are more samples than memory could hold"));
  }
}

enum class FileFormat { hdf5, npy, idx, csv, picture };

/// What the first bytes (unpacked) say; text is taken for csv.
FileFormat format_of(const std::string& path) {
  if (look_at(path) == Standing::directory) return FileFormat::picture;
  InputStream stream(path);
  std::string start(512, '\0');
  start.resize(stream.read(start.data(), start.size()));
  if (start.starts_with("\x89HDF\r\n\x1a\n")) return FileFormat::hdf5;
  if (start.starts_with("\x93NUMPY")) return FileFormat::npy;
  if (is_picture_file({reinterpret_cast<const uint8_t*>(start.data()), start.size()}))
    return FileFormat::picture;
  if (start.size() >= 4 && start[0] == 0 && start[1] == 0) return FileFormat::idx;
  if (!start.empty() && start.find('\0') == std::string::npos) return FileFormat::csv;
  throw UserError(
      fmt::format("{}: expected an HDF5, .npy, csv or IDX file, a picture or a folder of pictures, found {}",
                  path, start.empty() ? "an empty one" : "none of these"));
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

SourceColumns open_inputs_file(const std::string& path, const DatasetSpec& spec,
                               const std::vector<TensorSpec>& wanted, const TextOptions& options) {
  const FileFormat format = format_of(path);
  if (format != FileFormat::csv && (options.header || options.delimiter))
    throw UserError(
        fmt::format("{}: expected text, which a header or a delimiter is of, found another format", path));
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
    case FileFormat::picture:
      return open_pictures_at(path, picture_options(spec), wanted[0]);
    default:
      return SourceColumns({open_csv(path, wanted[0].dtype == DType::int32 ? DType::int32 : DType::float32,
                                     text_format(spec, options), spec.facts.source.fields.inputs)});
  }
}

}  // namespace

std::shared_ptr<const Dataset> open_split(const DatasetSpec& spec, const SplitSpec& split,
                                          const std::vector<TensorSpec>& inputs,
                                          const std::vector<TensorSpec>& targets, bool is_training) {
  ReadRequest request{spec.root, split.mark, before_transforms(inputs, false, spec.transforms),
                      before_transforms(targets, true, spec.transforms), spec.facts.source};
  DataSource source;
  const auto held = at_place(split.mark, [&] {
    source.reader = without_names(split.reader.resolved, split.reader->files()).to_yaml();
    source.paths = paths_of(split, request);
    return spec.cache->get(cache_key(spec, split, request),
                           [&] { return open_reader(*split.reader, request); });
  });
  source.facts = spec.facts;
  source.facts.source = held->facts;
  source.from = split.rows ? (*split.rows)[0] : 0;
  source.to = split.rows ? (*split.rows)[1] : held->total;
  if (source.to > held->total)
    throw UserError(located(
        split.mark, fmt::format("rows: expected at most the {} samples of {}, found [{}, {})", held->total,
                                held->columns.front()->spec().name, source.from, source.to)));
  auto plans = plan_columns(held->columns, inputs, targets, spec, is_training, split.mark);
  MixPlan mix = is_training ? plan_mixing(plans, inputs.size(), spec) : MixPlan();
  return std::make_shared<SplitDataset>(held, std::move(plans), std::move(source), std::move(mix));
}

std::vector<std::string> data_files(const DatasetSpec& spec) {
  std::vector<std::string> all;
  for (const char* name : {"train", "validation", "test"})
    if (const SplitSpec* split = spec.find(name)) {
      const auto paths = paths_of(*split, {spec.root, split->mark, {}, {}, {}});
      all.insert(all.end(), paths.begin(), paths.end());
    }
  return all;
}

void check_cache(const DatasetSpec& spec, const std::string& split) {
  const SplitSpec& wanted = *spec.find(split);
  at_place(wanted.mark, [&] { spec.cache->check(splits_like(spec, wanted).front()); });
}

std::shared_ptr<const Dataset> open_inputs(const std::string& path, const DatasetSpec& spec,
                                           const std::vector<TensorSpec>& inputs,
                                           const TextOptions& options) {
  SourceColumns found = at_place({}, [&] {
    return open_inputs_file(path, spec, before_transforms(inputs, false, spec.transforms), options);
  });
  const int64_t total = found.columns.front()->size();
  const auto held = std::make_shared<const CachedColumns>(std::move(found), 0, total);
  for (const auto& column : held->columns)
    if (column->size() != held->total)
      throw UserError(fmt::format("{}: expected as many samples for each input, found {} and {}", path,
                                  held->total, column->size()));
  DataSource source{"", {path}, {}, 0, held->total};
  return std::make_shared<SplitDataset>(held, plan_columns(held->columns, inputs, {}, spec, false, {}),
                                        std::move(source));
}

}  // namespace dtrain
