#include "data/dataset_spec.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "config/diagnostics.h"
#include "config/load/files.h"
#include "config/schema.h"
#include "data/caches/cache.h"
#include "data/columns/column_transforms.h"
#include "data/readers/reader.h"

namespace dtrain {

namespace {

std::vector<std::string> splits_with_readers(const DatasetSpec& spec) {
  std::vector<std::string> names;
  for (const char* name : kSplitNames)
    if (const SplitSpec* split = spec.find(name); split && !split->drawn) names.emplace_back(name);
  return names;
}

/// Checks the splits that are drawn from another split. Reports an error if the source split is missing or is
/// itself drawn, if 'stratify' or 'seed' is set for samples that are parts of one text, if the drawn
/// fractions leave no samples in the source split, or if splits drawn from the same source split have
/// different seeds.
void check_draws(const DatasetSpec& spec, Diagnostics& diagnostics) {
  std::map<std::string, double> fractions;
  std::map<std::string, int64_t> seeds;
  for (const char* name : kSplitNames) {
    const SplitSpec* split = spec.find(name);
    if (!split || !split->drawn) continue;
    const std::string& of = split->drawn->of;
    const SplitSpec* other = spec.find(of);
    if (!other || other->drawn)
      diagnostics.error(split->mark, fmt::format("split: 'of' must name a split that has a reader, but '{}' "
                                                 "is missing or has no reader{}",
                                                 of, suggestion_or_list(of, splits_with_readers(spec))));
    else if (other->reader->overlap() && (split->drawn->stratify || split->drawn->seed))
      diagnostics.error(
          split->mark, fmt::format("split: the samples of '{0}' are parts of one text, so '{1}' consists of "
                                   "the last samples and not of random samples; remove 'stratify' and 'seed'",
                                   of, name));
    else if ((fractions[of] += split->drawn->fraction) >= 1)
      diagnostics.error(
          split->mark,
          fmt::format(
              "split: the fractions drawn from '{}' leave no samples in it; their sum must be below 1", of));
    if (const auto& seed = split->drawn->seed; seed && seeds.emplace(of, *seed).first->second != *seed)
      diagnostics.error(
          split->mark,
          fmt::format(
              "split: all splits drawn from '{}' must have the same seed, but the seeds {} and {} are given",
              of, seeds[of], *seed));
  }
}

/// Checks the splits of time series. Windows are split by time, so 'stratify' and 'seed' are errors for
/// splits drawn from a split with windows. Also reports splits whose windows differ in length or horizon from
/// the windows of the first split, and augmentations of windows.
void check_split_windows(const DatasetSpec& spec, Diagnostics& diagnostics) {
  const SplitSpec* first = nullptr;
  bool has_windows = false;
  for (const char* name : kSplitNames) {
    const SplitSpec* split = spec.find(name);
    if (!split) continue;
    const SplitSpec* source = split->drawn ? spec.find(split->drawn->of) : split;
    if (split->drawn && source && source->windows && (split->drawn->stratify || split->drawn->seed))
      diagnostics.error(split->mark,
                        fmt::format("split: windows are split by time and not at random; remove '{}'",
                                    split->drawn->stratify ? "stratify" : "seed"));
    if (split->drawn) continue;
    has_windows = has_windows || split->windows;
    if (!first) first = split;
    const auto form = [](const SplitSpec& one) {
      return one.windows ? fmt::format("length {}, horizon {}", one.windows->length, one.windows->horizon)
                         : "no windows";
    };
    if (form(*first) != form(*split))
      diagnostics.error(split->mark, fmt::format("windows: another split has {}, but this split has {}; give "
                                                 "all splits windows of the same length and horizon",
                                                 form(*first), form(*split)));
  }
  if (has_windows && !spec.augment.empty())
    diagnostics.error(spec.augment.front().resolved.mark(),
                      "augment: windows of rows cannot be augmented; remove 'augment'");
}

/// Copies the reader, rows, windows and input targets of the source split to each drawn split.
void complete_draws(DatasetSpec& spec) {
  for (auto* split : {&spec.train, &spec.validation, &spec.test}) {
    if (!*split || !(*split)->drawn) continue;
    const SplitSpec& other = *spec.find((*split)->drawn->of);
    (*split)->reader = other.reader;
    (*split)->rows = other.rows;
    (*split)->windows = other.windows;
    (*split)->input_targets = other.input_targets;
  }
}

/// Returns true if the two splits have rows in common. A split without the option `rows` contains all rows.
bool have_rows_in_common(const SplitSpec& a, const SplitSpec& b) {
  return !a.rows || !b.rows || std::max((*a.rows)[0], (*b.rows)[0]) < std::min((*a.rows)[1], (*b.rows)[1]);
}

/// Warns if the validation or the test split reads training samples although it is not drawn from the
/// training split.
void warn_of_same_samples(const DatasetSpec& spec, Diagnostics& diagnostics) {
  for (const char* name : {"validation", "test"}) {
    const SplitSpec* split = spec.find(name);
    if (!split || !spec.train || split->drawn || spec.train->drawn) continue;
    if (split->reader->files().empty() || !have_rows_in_common(*split, *spec.train) ||
        split->reader.resolved.to_yaml() != spec.train->reader.resolved.to_yaml())
      continue;
    diagnostics.warning(
        split->mark,
        fmt::format("{0}: this split has samples in common with the training split, so its results do not "
                    "show how well the model performs on unseen samples; to hold out a part of the training "
                    "samples, write `{0}: {{split: {{of: train, fraction: 0.15}}}}`",
                    name));
  }
}

Schema<DatasetSpec> make_schema() {
  Schema<DatasetSpec> schema(
      "The samples of the training, validation and test splits, and the transforms of the samples.");
  schema
      .optional("root", &DatasetSpec::root,
                "the folder of the data files. A relative path is searched first in the folder of this "
                "configuration file, then in $DTRAIN_DATA. Default: the folder of this configuration file")
      .optional("train", &DatasetSpec::train,
                "the samples to train on. Give a reader, or `split: {of: test, fraction: 0.5}` to take a "
                "part of another split's samples. Beside a reader, `rows: [0, 1000]` uses only the first "
                "1000 samples, and `windows: {length: 96, horizon: 24}` makes windows of time series")
      .optional("validation", &DatasetSpec::validation,
                "the samples on which the model is evaluated after each epoch")
      .optional("test", &DatasetSpec::test,
                "the samples on which `dtrain evaluate` evaluates the model by default")
      .optional("transforms", &DatasetSpec::transforms,
                "operations on the samples, applied in the given order. The option `of` of a transform names "
                "the inputs and targets to change. By default, rescale, normalize and standardize are "
                "applied to the float inputs, reshape and cast to all inputs, and one_hot to the targets")
      .optional("augment", &DatasetSpec::augment,
                "random changes to the training images, applied in the given order before the transforms. "
                "Only mix_up and cut_mix are applied after the transforms. The random numbers depend on the "
                "seed, the epoch and the sample's index, so the changes are different in each epoch")
      .optional("shuffle", &DatasetSpec::shuffle,
                "whether to shuffle the training split. If true, each epoch has a new random order of all "
                "samples, which depends on the seed")
      .optional("batches", &DatasetSpec::batches, "options for batches of padded sequences")
      .optional(
          "vocabulary_from", &DatasetSpec::vocabulary_from,
          "path of a run directory or a checkpoint whose vocabularies of text are used. Default: the "
          "vocabularies are learned from the training split. Set this option if the model starts with "
          "weights of that run (`model.weights`), because an embedding belongs to a vocabulary. A run that "
          "is resumed keeps its own vocabularies")
      .optional(
          "cache", &DatasetSpec::cache,
          "where samples are kept for later epochs after they have been read. none: samples are not kept; "
          "memory: in memory; {file: PATH}: in a file; device: in memory and also in the memory of each GPU")
      .optional("prefetch", &DatasetSpec::prefetch,
                "maximum number of batches that are read in advance while the model trains. With 0, each "
                "batch is read when it is needed",
                between<int64_t>(0, 1024))
      .rule([](const DatasetSpec& spec, const ConfigNode& node, Diagnostics& diagnostics) {
        if (!spec.train && !spec.validation && !spec.test)
          diagnostics.error(node, "dataset: give at least one of train, validation and test");
        if (spec.batches.bucket_by_length && !spec.augment.empty())
          diagnostics.error(*node.find("batches"),
                            "batches: bucket_by_length cannot be combined with augment; remove one of the "
                            "two options");
        check_draws(spec, diagnostics);
        check_split_windows(spec, diagnostics);
      });
  return schema;
}

const Schema<DatasetSpec>& dataset_schema() {
  static const Schema<DatasetSpec> schema = make_schema();
  return schema;
}

std::string absolute_name(const std::filesystem::path& path) {
  std::string text = without_dots(absolute_path(path.string()));
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

/// Returns the folder of the configuration file at `mark`. Returns an empty path (the working directory) if
/// the value does not come from a file or was set with --set. Values from --set have no line number.
std::filesystem::path folder_of(const Mark& mark) {
  return mark.file && mark.line > 0 ? std::filesystem::path(*mark.file).parent_path()
                                    : std::filesystem::path();
}

/// Makes the path in `cache: {file: PATH}` absolute. It is relative to the file that contains it.
ConfigNode with_absolute_cache(const ConfigNode& node) {
  const ConfigNode* cache = node.find("cache");
  const ConfigNode* file = cache ? cache->find("file") : nullptr;
  const ConfigNode* path = file && file->is_mapping() ? file->find("path") : file;
  if (!path || !path->is_scalar() || path->text().empty()) return node;
  const std::string full = absolute_name(folder_of(path->mark()) / path->text());
  const ConfigNode options = ConfigNode::mapping(
      {ConfigNode::entry("path", ConfigNode::scalar(full, true, path->mark()))}, file->mark());
  return node.with("cache", cache->with("file", options));
}

/// Makes relative paths in `files` absolute if they were written in a base configuration in a different
/// folder. Such a path is relative to the folder of the base configuration, not to the folder of `data`.
ConfigNode with_files_of_others(const ConfigNode& data, const std::vector<std::string>& files) {
  const std::filesystem::path home = folder_of(data.mark());
  return data.with_scalars([&](const ConfigNode& scalar) {
    const bool is_file = std::find(files.begin(), files.end(), scalar.text()) != files.end();
    if (!is_file || scalar.mark().line == 0 || folder_of(scalar.mark()) == home) return scalar;
    return ConfigNode::scalar(absolute_path(find_file(scalar.text(), scalar.mark())), true, scalar.mark());
  });
}

/// Returns the file names in the readers of all splits.
std::vector<std::string> files_of(const DatasetSpec& spec) {
  std::vector<std::string> all;
  for (const char* name : kSplitNames)
    if (const SplitSpec* split = spec.find(name); split && split->reader)
      for (const std::string& file : split->reader->files()) all.push_back(file);
  return all;
}

/// Returns the absolute path of the folder in which relative file names are searched first. The path is
/// absolute so that it remains valid if the configuration is later read from a copy in another folder.
std::string absolute_root(const std::string& root, const ConfigNode& node) {
  const ConfigNode* written = node.find("root");
  if (root.empty() || !written) return absolute_name(folder_of(node.mark()) / ".");
  return absolute_name(find_file(root, written->mark()));
}

}  // namespace

const Schema<BatchOptions>& BatchOptions::schema() {
  static const auto schema =
      Schema<BatchOptions>("Options for batches of padded sequences.")
          .example("{bucket_by_length: true}")
          .optional("bucket_by_length", &BatchOptions::bucket_by_length,
                    "whether each training batch consists of sequences of similar lengths. Training and "
                    "validation batches are then truncated to the length of their longest sequence. The "
                    "model needs a mask of the padding");
  return schema;
}

const SplitSpec* DatasetSpec::find(const std::string& split) const {
  for (const auto& [name, found] : {std::pair{"train", &train}, {"validation", &validation}, {"test", &test}})
    if (split == name) return found->has_value() ? &**found : nullptr;
  return nullptr;
}

std::string DatasetSpec::name_of(const SplitSpec& split) const {
  for (const char* name : kSplitNames)
    if (find(name) == &split) return name;
  return "";
}

std::optional<DatasetSpec> parse_dataset(const ConfigNode& written, Diagnostics& diagnostics) {
  DatasetSpec spec;
  ConfigNode node = with_absolute_cache(written);
  if (!dataset_schema().parse(node, "dataset", spec, diagnostics)) return std::nullopt;
  if (const ConfigNode now = with_files_of_others(node, files_of(spec));
      spec.root.empty() && !now.same_as(node)) {
    spec = {};
    node = now;
    dataset_schema().parse(node, "dataset", spec, diagnostics);
  }
  warn_of_same_samples(spec, diagnostics);
  complete_draws(spec);
  spec.root = absolute_root(spec.root, node);
  if (const ConfigNode* from = node.find("vocabulary_from"); from && !spec.vocabulary_from.empty())
    spec.vocabulary_from = absolute_name(find_file(spec.vocabulary_from, from->mark()));
  spec.resolved = dataset_schema().write(spec);
  return spec;
}

Json dataset_json_schema() {
  return dataset_schema().json_schema();
}

}  // namespace dtrain
