// From a checked `dataset:` and the model's wishes to samples.
#include <algorithm>
#include <cstring>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/error.h"
#include "data/cache.h"
#include "data/dataset_spec.h"
#include "data/input_file.h"
#include "data/readers/open_any.h"
#include "data/readers/reader.h"
#include "data/split_dataset.h"
#include "data/transforms/transform.h"

namespace dtrain {

namespace {

std::string located(const Mark& mark, const std::string& message) {
  const std::string where = mark.str();
  return where.empty() ? message : fmt::format("{}: error: {}", where, message);
}

/// What the readers should find, for the transforms to make `wanted` of it.
std::vector<TensorSpec> before_transforms(std::vector<TensorSpec> wanted, bool targets,
                                          const std::vector<Kind<Transform>>& transforms) {
  for (TensorSpec& spec : wanted)
    for (auto transform = transforms.rbegin(); transform != transforms.rend(); ++transform)
      if ((*transform)->for_targets() == targets) spec = (*transform)->before(spec);
  return wanted;
}

/// Extents of 1 at the end change nothing about a row.
Shape without_ones_at_end(const Shape& shape) {
  std::vector<int64_t> extents = shape.extents();
  while (!extents.empty() && extents.back() == 1) extents.pop_back();
  return Shape(std::move(extents));
}

bool converts_losslessly(DType from, DType to) {
  return from == to || from == DType::uint8 || (from == DType::int32 && to == DType::float32);
}

ColumnPlan plan_column(const TensorSpec& stored, const TensorSpec& wanted, bool target,
                       const std::vector<Kind<Transform>>& transforms, const Mark& place) {
  ColumnPlan plan(stored);
  for (const auto& transform : transforms) {
    if (transform->for_targets() != target) continue;
    try {
      transform->apply(plan);
    } catch (const UserError& error) {
      throw UserError(located(transform.resolved.mark(), error.what()));
    }
  }
  const TensorSpec found = plan.spec();
  const auto describe = [](const TensorSpec& spec) {
    return fmt::format("{} {}", spec.shape.str(), name_of(spec.dtype));
  };
  if (without_ones_at_end(found.shape) != without_ones_at_end(wanted.shape) ||
      !converts_losslessly(found.dtype, wanted.dtype))
    throw UserError(
        located(place, fmt::format("the {} '{}' wants {} a sample, found {} after the transforms ({}: {})",
                                   target ? "target" : "model's input", wanted.name, describe(wanted),
                                   describe(found), stored.name, describe(stored))));
  plan.cast(wanted.dtype);
  plan.reshape(wanted.shape);
  plan.rename(wanted.name);
  return plan;
}

std::vector<ColumnPlan> plan_columns(const Columns& columns, const std::vector<TensorSpec>& inputs,
                                     const std::vector<TensorSpec>& targets,
                                     const std::vector<Kind<Transform>>& transforms, const Mark& place) {
  std::vector<ColumnPlan> plans;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool target = i >= inputs.size();
    const TensorSpec& wanted = target ? targets[i - inputs.size()] : inputs[i];
    plans.push_back(plan_column(columns[i]->spec(), wanted, target, transforms, place));
  }
  return plans;
}

Columns open_reader(const Reader& reader, const ReadRequest& request) {
  Columns columns = reader.open(request);
  for (const auto& column : columns)
    if (column->size() != columns.front()->size())
      request.fail(fmt::format("expected as many samples in each file, found {} in {} and {} in {}",
                               columns.front()->size(), columns.front()->spec().name, column->size(),
                               column->spec().name));
  return columns;
}

/// Size and time of last change of a file, for noticing that it is another one.
std::string fingerprint(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    throw UserError(fmt::format("{}: cannot open the file: {}", path, std::strerror(errno)));
  return fmt::format("{} {} bytes, changed {}.{:09}\n", path, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

/// Splits that differ in their rows only have one key.
CacheKey cache_key(const DatasetSpec& spec, const SplitSpec& split, const ReadRequest& request) {
  const std::string reader = split.reader.resolved.to_yaml();
  CacheKey key{reader, "", std::nullopt};
  bool all_rows = !split.rows;
  if (split.rows) key.rows = split.rows;
  for (const char* name : {"train", "validation", "test"}) {
    const SplitSpec* other = spec.find(name);
    if (!other || other->reader.resolved.to_yaml() != reader) continue;
    if (key.name.empty()) key.name = name;
    if (!other->rows) all_rows = true;
    if (all_rows) continue;
    (*key.rows)[0] = std::min((*key.rows)[0], (*other->rows)[0]);
    (*key.rows)[1] = std::max((*key.rows)[1], (*other->rows)[1]);
  }
  if (key.name.empty()) key.name = "split";
  if (all_rows) key.rows.reset();
  for (const std::string& file : split.reader->files()) {
    try {
      key.identity += fingerprint(request.find(file));
    } catch (const UserError& error) {
      request.fail(error.what());
    }
  }
  for (const auto* wanted : {&request.inputs, &request.targets})
    for (const TensorSpec& one : *wanted)
      key.identity += fmt::format("{} {} {}\n", one.name, one.shape.str(), name_of(one.dtype));
  if (key.rows) key.identity += fmt::format("rows {} to {}\n", (*key.rows)[0], (*key.rows)[1]);
  return key;
}

enum class FileFormat { hdf5, npy, idx, csv };

/// What the first bytes (unpacked) say; text is taken for csv.
FileFormat format_of(const std::string& path) {
  InputStream stream(path);
  std::string start(512, '\0');
  start.resize(stream.read(start.data(), start.size()));
  if (start.starts_with("\x89HDF\r\n\x1a\n")) return FileFormat::hdf5;
  if (start.starts_with("\x93NUMPY")) return FileFormat::npy;
  if (start.size() >= 4 && start[0] == 0 && start[1] == 0) return FileFormat::idx;
  if (!start.empty() && start.find('\0') == std::string::npos) return FileFormat::csv;
  throw UserError(fmt::format("{}: expected an HDF5, .npy, csv or IDX file, found {}", path,
                              start.empty() ? "an empty one" : "none of these"));
}

Columns open_inputs_file(const std::string& path, const std::vector<TensorSpec>& wanted) {
  const FileFormat format = format_of(path);
  Columns columns;
  if (format == FileFormat::hdf5 && wanted.size() > 1) {
    for (const TensorSpec& spec : wanted) columns.push_back(open_hdf5(path, spec.name));
    return columns;
  }
  if (wanted.size() != 1)
    throw UserError(fmt::format("{}: expected an HDF5 file with a dataset for each of the model's {} inputs",
                                path, wanted.size()));
  switch (format) {
    case FileFormat::hdf5:
      return {open_hdf5(path, "")};
    case FileFormat::npy:
      return {open_npy(path)};
    case FileFormat::idx:
      return {open_idx(path)};
    default:
      return {open_csv(path, wanted[0].dtype == DType::int32 ? DType::int32 : DType::float32)};
  }
}

}  // namespace

std::shared_ptr<const Dataset> open_split(const DatasetSpec& spec, const SplitSpec& split,
                                          const std::vector<TensorSpec>& inputs,
                                          const std::vector<TensorSpec>& targets) {
  const ReadRequest request{spec.root, split.mark, before_transforms(inputs, false, spec.transforms),
                            before_transforms(targets, true, spec.transforms)};
  const auto held =
      spec.cache->get(cache_key(spec, split, request), [&] { return open_reader(*split.reader, request); });
  const int64_t from = split.rows ? (*split.rows)[0] : 0, to = split.rows ? (*split.rows)[1] : held->total;
  if (to > held->total)
    request.fail(fmt::format("rows: expected at most the {} samples of {}, found [{}, {})", held->total,
                             held->columns.front()->spec().name, from, to));
  auto plans = plan_columns(held->columns, inputs, targets, spec.transforms, split.mark);
  return std::make_shared<SplitDataset>(held, std::move(plans), from - held->first, to - from);
}

std::shared_ptr<const Dataset> open_inputs(const std::string& path,
                                           const std::vector<Kind<Transform>>& transforms,
                                           const std::vector<TensorSpec>& inputs) {
  auto held = std::make_shared<CachedColumns>();
  held->columns = open_inputs_file(path, before_transforms(inputs, false, transforms));
  held->total = held->columns.front()->size();
  for (const auto& column : held->columns)
    if (column->size() != held->total)
      throw UserError(fmt::format("{}: expected as many samples for each input, found {} and {}", path,
                                  held->total, column->size()));
  return std::make_shared<SplitDataset>(held, plan_columns(held->columns, inputs, {}, transforms, {}), 0,
                                        held->total);
}

}  // namespace dtrain
