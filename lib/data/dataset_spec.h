// The `dataset:` section of a configuration, which is checked without opening files; and functions that open
// its splits.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/registry.h"
#include "config/schema.h"
#include "data/columns/column_transforms.h"
#include "data/dataset.h"
#include "data/splits/split_spec.h"

namespace dtrain {

class Cache;  // defined in cache.h
template <>
const Registry<Cache>& registry<Cache>();

inline constexpr std::array<const char*, 3> kSplitNames{"train", "validation", "test"};

/// Options for the composition of batches.
struct BatchOptions {
  // Whether batches consist of sequences of similar lengths and are truncated to the length of their longest
  // sequence (batch_order.h).
  bool bucket_by_length = false;

  static const Schema<BatchOptions>& schema();
};

struct DatasetSpec {
  // Absolute path of the folder in which relative file names are searched, before $DTRAIN_DATA.
  std::string root;
  std::optional<SplitSpec> train, validation, test;
  std::vector<TransformSpec> transforms;          // in the order of application
  std::vector<Configured<Augmentation>> augment;  // for the training split's images, in order
  bool shuffle = true;  // shuffles the training split; other splits are never shuffled
  BatchOptions batches;
  // Absolute path of the run or checkpoint whose text vocabularies are used. If "", vocabularies are learned
  // from the training split.
  std::string vocabulary_from;
  Configured<Cache> cache = registry<Cache>().make("none");
  int64_t prefetch = 2;
  DataFacts facts;    // facts of the training split, set when it is opened; other splits are read with them
  uint64_t seed = 0;  // the run's seed; used to draw splits unless `facts` contains the seed of earlier draws
  // The section as written to the run directory's config.yaml, with defaults and an absolute root.
  ConfigNode resolved;

  /// Returns the split named "train", "validation" or "test"; null if it is not configured.
  const SplitSpec* find(const std::string& split) const;
  /// Returns the name of `split` if it is a split of this data set; "" otherwise.
  std::string name_of(const SplitSpec& split) const;
};

/// Parses the `dataset:` section and reports all its errors. Returns nullopt if there are any.
std::optional<DatasetSpec> parse_dataset(const ConfigNode& node, Diagnostics& diagnostics);
Json dataset_json_schema();

/// Opens a split for a model. Reads at least the headers of the files, and reads all data if a cache must be
/// filled.
/// Checks that the columns fit the model after the transforms. `inputs` lists the model's inputs in order.
/// `targets` gives the shapes and dtypes that the losses need. The values of integer labels are not checked
/// here. Lossless conversions between dtypes are automatic: uint8 to float32 or int32, and int32 labels to
/// float32. If a column does not fit, throws UserError with the location in the configuration, the path, and
/// the expected and found content.
/// If `is_training` is true, the samples are augmented.
/// spec.facts holds the facts of the training split. Missing facts are derived from this split.
/// Dataset::facts() returns all facts.
/// If the split's reader has sample weights, they are an additional last column of type float32.
std::shared_ptr<const Dataset> open_split(const DatasetSpec& spec, const SplitSpec& split,
                                          const std::vector<TensorSpec>& inputs,
                                          const std::vector<TensorSpec>& targets, bool is_training = false);

/// Reports entries `target: {input: ...}` that name a target or an input that is not in the model.
void check_input_targets(const DatasetSpec& spec, const std::vector<TensorSpec>& inputs,
                         const std::vector<TensorSpec>& targets, Diagnostics& diagnostics);

/// Reports the inputs and targets of the model whose shapes differ from the shapes of the splits' windows.
void check_windows(const DatasetSpec& spec, const std::vector<TensorSpec>& inputs,
                   const std::vector<TensorSpec>& targets, Diagnostics& diagnostics);

/// Returns the paths of the data files of all splits. Files that do not exist are left out.
std::vector<std::string> data_files(const DatasetSpec& spec);
/// Reports the splits whose files do not exist.
void check_files_exist(const DatasetSpec& spec, Diagnostics& diagnostics);

/// Throws UserError if the cache could not store the samples of the split. Does not open the split.
void check_cache(const DatasetSpec& spec, const std::string& split);

/// Options for reading delimited text. Options that are not set are taken from the csv reader of the run.
struct TextOptions {
  std::optional<bool> header;
  std::optional<char> delimiter;
};

class GivenFile;  // given_file.h
using GivenFiles = std::vector<GivenFile>;

/// Opens the files passed to `dtrain predict`, concatenates them, and applies the data set's transforms to
/// the inputs.
/// The format of a file is determined by its first bytes, not by its name. Supported are HDF5 files; .npy,
/// IDX, delimited text and JSON lines, each optionally compressed with gzip; images; and folders and tar
/// archives of images.
/// Delimited text is read with the options of the data set's csv reader. If both the file and the training
/// file have a header, columns are matched by name. If the run has no csv reader, a first line of names is
/// treated as a header.
/// Throws UserError if `options` are given for a file that is not delimited text.
std::shared_ptr<const Dataset> open_inputs(const GivenFiles& files, const DatasetSpec& spec,
                                           const std::vector<TensorSpec>& inputs, const TextOptions& options);

/// Opens files that hold both inputs and targets, in the form that the losses need. The files are read with
/// the run's own reader. If they have sample weights, these are an additional last column of type float32.
/// Throws UserError in the same cases as open_inputs(), and also if a file has no targets.
std::shared_ptr<const Dataset> open_labeled(const GivenFiles& files, const DatasetSpec& spec,
                                            const std::vector<TensorSpec>& inputs,
                                            const std::vector<TensorSpec>& targets,
                                            const TextOptions& options);

}  // namespace dtrain
