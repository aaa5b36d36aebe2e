// Opens the splits of a `dataset:` section that has been checked. The samples have the columns of the model.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/caches/cache.h"
#include "data/columns/column_transforms.h"
#include "data/dataset_spec.h"
#include "data/files/folder_listing.h"
#include "data/located_error.h"
#include "data/opening.h"
#include "data/readers/reader.h"
#include "data/splits/split_dataset.h"
#include "data/splits/split_rows.h"
#include "data/splits/time_split.h"

namespace dtrain {

namespace {

SourceColumns open_reader(const Reader& reader, const ReadRequest& request) {
  SourceColumns source = reader.open(request);
  const Column& first = *source.columns.front();
  for (const auto& column : source.columns)
    if (column->size() != first.size())
      request.fail(
          fmt::format("all arrays must have the same number of samples, but found {} in {} and {} in {}",
                      first.size(), first.spec().name, column->size(), column->spec().name));
  return source;
}

/// Returns a text that changes if the file is replaced or modified. The text includes the time of the last
/// status change (ctime) because programs cannot set this time.
std::string fingerprint(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    throw UserError(fmt::format("{}: cannot open the file: {}", path, std::strerror(errno)));
  if (S_ISDIR(status.st_mode)) return fingerprint_of({path, list_folder(path)});
  return fmt::format("{} {} bytes, inode {}, written {}.{:09}, changed {}.{:09}\n", path, status.st_size,
                     status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

/// Returns the names of the splits that read the same files as `split` with the same options, including
/// `split` itself. They may read different rows. These splits share a cache, which has the name of the first
/// of them.
std::vector<std::string> splits_like(const DatasetSpec& spec, const SplitSpec& split) {
  std::vector<std::string> names;
  for (const char* name : {"train", "validation", "test"})
    if (const SplitSpec* other = spec.find(name);
        other && other->reader.resolved.to_yaml() == split.reader.resolved.to_yaml())
      names.emplace_back(name);
  return names;
}

/// Returns the cache's key. Splits that differ only in their rows have the same key.
CacheKey cache_key(const DatasetSpec& spec, const SplitSpec& split, const ReadRequest& request,
                   const DataSource& source) {
  const std::vector<std::string> names = splits_like(spec, split);
  CacheKey key{split.reader.resolved.to_yaml(), "", names.empty() ? "split" : names.front(), split.rows,
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
  for (const auto* wanted : {&request.inputs, &request.targets})
    for (const TensorSpec& one : *wanted)
      key.source += fmt::format("{} {} {}\n", one.name, one.shape.str(), name_of(one.dtype));
  if (request.windows) key.source += request.windows->columns_read();
  if (request.held_out > 0) key.source += fmt::format("held out {}\n", request.held_out);
  if (key.rows) key.source += fmt::format("rows {} to {}\n", (*key.rows)[0], (*key.rows)[1]);
  for (const std::string& path : source.paths) key.source += path + "\n";
  key.identity = key.source;
  ErrorCollector errors;
  for (const std::string& path : source.paths) errors.attempt({}, [&] { key.identity += fingerprint(path); });
  errors.throw_if_errors();
  if (!source.named.files.empty()) key.identity += fingerprint_of(source.named);
  return key;
}

/// Replaces each file name in a configuration node with its index in `files` ("file 0").
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

/// Returns the options that determine the samples and are therefore part of a DataIdentity: the options of
/// the reader, without file names, and the options of windows.
std::string identifying_options(const SplitSpec& split) {
  const ConfigNode reader = without_names(split.reader.resolved, split.reader->files());
  if (!split.windows) return reader.to_yaml();
  return reader.with("windows", WindowsOptions::schema().write(*split.windows)).to_yaml();
}

}  // namespace

std::shared_ptr<const Dataset> open_split(const DatasetSpec& spec, const SplitSpec& split,
                                          const std::vector<TensorSpec>& model_inputs,
                                          const std::vector<TensorSpec>& model_targets, bool is_training) {
  const std::vector<TensorSpec> inputs = rows_of_windows(split.windows, model_inputs, false);
  const std::vector<TensorSpec> targets = rows_of_windows(split.windows, model_targets, true);
  ReadRequest request{
      spec.root, split.mark, before_transforms(inputs, false, spec.transforms), {}, spec.facts.source};
  request.targets = before_transforms(split.targets_to_read(targets), true, spec.transforms);
  request.windows = split.windows ? &*split.windows : nullptr;
  if (split.reader->overlap()) request.held_out = held_out_fraction(spec, split);
  DataSource source;
  const auto held = at_place(split.mark, [&] {
    source.reader = identifying_options(split);
    source.paths = split.reader->paths(request);
    source.named = split.reader->named_files(request);
    return spec.cache->get(cache_key(spec, split, request, source),
                           [&] { return open_reader(*split.reader, request); });
  });
  source.facts = spec.facts;
  source.facts.source = held->facts;
  source.from = split.rows ? (*split.rows)[0] : 0;
  source.to = split.rows ? (*split.rows)[1] : held->total;
  if (source.to > held->total)
    throw UserError(
        located(split.mark, fmt::format("rows: [{2}, {3}) is out of range because {1} has only {0}",
                                        format_plural(held->total, "sample"),
                                        held->columns.front()->spec().name, source.from, source.to)));
  if (split.windows) {
    source.windows = at_place(split.windows->mark,
                              [&] { return windows_of_split(spec, split, *held, source, inputs.size()); });
  } else if (auto drawn = draw_rows(spec, split, *held, source.from, source.to, inputs.size())) {
    source.rows = std::move(drawn->rows);
    source.drawn = std::move(drawn->words);
    if (drawn->seed) source.facts.split_seed = drawn->seed;
  }
  ColumnPlanner planner(spec, *held, source, split.mark,
                        is_training ? Purpose::training : Purpose::evaluation);
  planner.add_inputs(inputs);
  planner.add_targets(targets, split, inputs);
  if (held->weights) planner.add_weights();
  MixPlan mix = is_training ? plan_mixing(planner.plans, inputs.size(), planner.input_targets, spec.augment)
                            : MixPlan();
  return std::make_shared<SplitDataset>(held, std::move(planner.plans), std::move(source), std::move(mix),
                                        std::move(planner.columns));
}

namespace {

/// Returns the result of `find`, or an empty result if a file does not exist.
template <class Find>
std::vector<std::string> found_or_none(Find find) {
  try {
    return find();
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace

std::vector<std::string> data_files(const DatasetSpec& spec) {
  std::vector<std::string> all;
  for (const char* name : {"train", "validation", "test"})
    if (const SplitSpec* split = spec.find(name)) {
      ReadRequest request{spec.root, split->mark, {}, {}, {}};
      request.windows = split->windows ? &*split->windows : nullptr;
      if (const auto paths = found_or_none([&] { return split->reader->paths(request); }); !paths.empty()) {
        all.insert(all.end(), paths.begin(), paths.end());
        continue;
      }
      for (const std::string& file : split->reader->files()) {
        const auto path = found_or_none([&] { return std::vector{request.find(file)}; });
        all.insert(all.end(), path.begin(), path.end());
      }
    }
  return all;
}

void check_files_exist(const DatasetSpec& spec, Diagnostics& diagnostics) {
  for (const char* name : kSplitNames) {
    const SplitSpec* split = spec.find(name);
    if (!split || split->drawn || !split->reader) continue;
    try {
      with_location(split->mark, [&] { split->reader->paths({spec.root, split->mark, {}, {}, {}}); });
    } catch (const LocatedError& error) {
      for (const auto& [mark, message] : error.errors()) diagnostics.error(mark, message);
    }
  }
}

void check_cache(const DatasetSpec& spec, const std::string& split) {
  const SplitSpec& wanted = *spec.find(split);
  at_place(wanted.mark, [&] { spec.cache->check(splits_like(spec, wanted).front()); });
}

}  // namespace dtrain
