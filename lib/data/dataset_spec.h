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
  // Whether batches consist of sequences of similar lengths, and are cut to their longest sequence
  // (batch_order.h).
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
  Configured<Cache> cache = registry<Cache>().make("none");
  int64_t prefetch = 2;
  DataFacts facts;    // facts of the training split, set when it is opened; other splits are read with them
  uint64_t seed = 0;  // the run's seed, with which splits are drawn unless the facts hold another seed
  // The section as written to the run directory's config.yaml, with defaults and an absolute root.
  ConfigNode resolved;

  /// Returns the split named "train", "validation" or "test"; null if it is not configured.
  const SplitSpec* find(const std::string& split) const;
  /// Returns the name of a split of this data set; "" for any other split.
  std::string name_of(const SplitSpec& split) const;
};

/// Parses the `dataset:` section and reports all its errors. Returns nullopt if there are any.
std::optional<DatasetSpec> parse_dataset(const ConfigNode& node, Diagnostics& diagnostics);
Json dataset_json_schema();

/// Opens a split for a model. Reads the files' headers (all data if the cache is memory) and checks that
/// their content, after the transforms, fits `inputs` (the model's inputs, in order) and `targets` (shape and
/// dtype that the losses need; the values of integer labels are not checked here). Lossless conversions
/// between dtypes are implied: uint8 to float32 or int32, int32 labels to float32. Throws UserError with the
/// location in the configuration, the path, and the expected and found content. Training samples
/// (`is_training`) are augmented. spec.facts holds the facts of the training split; missing facts are derived
/// from this split, and Dataset::facts() returns all of them. If the split's reader has sample weights, they
/// are an additional last column of float32.
std::shared_ptr<const Dataset> open_split(const DatasetSpec& spec, const SplitSpec& split,
                                          const std::vector<TensorSpec>& inputs,
                                          const std::vector<TensorSpec>& targets, bool is_training = false);

/// Reports `target: {input: ...}` entries whose target or input the model does not have.
void check_input_targets(const DatasetSpec& spec, const std::vector<TensorSpec>& inputs,
                         const std::vector<TensorSpec>& targets, Diagnostics& diagnostics);

/// Reports inputs and targets of the model that do not have the shapes of the splits' windows.
void check_windows(const DatasetSpec& spec, const std::vector<TensorSpec>& inputs,
                   const std::vector<TensorSpec>& targets, Diagnostics& diagnostics);

/// Returns the paths of the files of all splits that exist now.
std::vector<std::string> data_files(const DatasetSpec& spec);

/// Throws UserError if the cache could not store the samples of a split; does not open the split.
void check_cache(const DatasetSpec& spec, const std::string& split);

/// Options for reading delimited text. The run's own reader decides options that are not set.
struct TextOptions {
  std::optional<bool> header;
  std::optional<char> delimiter;
};

class GivenFile;  // given_file.h
using GivenFiles = std::vector<GivenFile>;

/// Opens the files passed to `dtrain predict`, concatenates them, and applies the data set's transforms to
/// the inputs. A file's first bytes, not its name, determine its format: HDF5; .npy, IDX, delimited text or
/// JSON lines, each optionally compressed with gzip; an image; a folder or a tar archive of images. Text is
/// read as the data set's csv reader reads it; if both this file and the training file have a header, columns
/// are matched by name. A run without a csv reader treats a first line of names as a header. Throws UserError
/// if `options` are given for a file that is not text.
std::shared_ptr<const Dataset> open_inputs(const GivenFiles& files, const DatasetSpec& spec,
                                           const std::vector<TensorSpec>& inputs, const TextOptions& options);

/// Opens files that hold inputs and targets (as the losses need them), read by the run's own reader. If they
/// have sample weights, these are an additional last column of float32. Throws UserError like open_inputs(),
/// and for a file without targets.
std::shared_ptr<const Dataset> open_labelled(const GivenFiles& files, const DatasetSpec& spec,
                                             const std::vector<TensorSpec>& inputs,
                                             const std::vector<TensorSpec>& targets,
                                             const TextOptions& options);

}  // namespace dtrain
