// The `dataset:` part of a configuration, which is checked without touching a file; and the opening of its
// splits.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/registry.h"
#include "data/columns/column_transforms.h"
#include "data/dataset.h"
#include "data/splits/split_spec.h"

namespace dtrain {

class Cache;  // cache.h: none, memory, file, device
template <>
const Registry<Cache>& registry<Cache>();

inline constexpr std::array<const char*, 3> kSplitNames{"train", "validation", "test"};

struct DatasetSpec {
  std::string root;  // absolute: where relative file names are looked up first, then under $DTRAIN_DATA
  std::optional<SplitSpec> train, validation, test;
  std::vector<TransformSpec> transforms;          // in the order in which they are applied
  std::vector<Configured<Augmentation>> augment;  // of the training split's pictures, in order
  bool shuffle = true;                            // of the training split; others are never shuffled
  Configured<Cache> cache = registry<Cache>().make("none");
  int64_t prefetch = 2;
  DataFacts facts;      // of the training split, once it was opened: others are read by them
  uint64_t seed = 0;    // the run's: splits are drawn by it, unless the facts know another
  ConfigNode resolved;  // as `config.yaml` of the run directory says it: defaults written out, root absolute

  /// The split that is called "train", "validation" or "test"; null where it is not given.
  const SplitSpec* find(const std::string& split) const;
};

/// Reports every mistake; null then.
std::optional<DatasetSpec> parse_dataset(const ConfigNode& node, Diagnostics& diagnostics);
Json dataset_json_schema();

/// Opens a split for a model: looks at the files (headers; everything, where the cache is memory), and checks
/// that what they hold, after the transforms, fits `inputs` (the model's, in order) and `targets` (what the
/// losses want: shape, dtype; integer labels are checked against nothing here). Conversion between dtypes is
/// implied where it loses nothing (uint8 to float32 or int32; int32 labels to float32). Throws UserError with
/// the place in the configuration, the path, what was expected and what was found. Samples that are trained
/// on (`is_training`) are augmented. What the training split tells is in spec.facts; what is not there yet is
/// found in this split, and Dataset::facts() has all. Where the split's reader has weights of samples, they
/// are a last column, float32.
std::shared_ptr<const Dataset> open_split(const DatasetSpec& spec, const SplitSpec& split,
                                          const std::vector<TensorSpec>& inputs,
                                          const std::vector<TensorSpec>& targets, bool is_training = false);

/// Reports targets that are inputs where the model has no such target, or no such input.
void check_input_targets(const DatasetSpec& spec, const std::vector<TensorSpec>& inputs,
                         const std::vector<TensorSpec>& targets, Diagnostics& diagnostics);

/// The paths of those files of all splits that are found now.
std::vector<std::string> data_files(const DatasetSpec& spec);

/// Throws UserError where the cache could not keep the samples of a split, without opening it.
void check_cache(const DatasetSpec& spec, const std::string& split);

/// How delimited text is read. Where an option is not set, the run's own reader decides.
struct TextOptions {
  std::optional<bool> header;
  std::optional<char> delimiter;
};

class GivenFile;  // given_file.h
using GivenFiles = std::vector<GivenFile>;

/// Opens the files that `dtrain predict` is given, one after the other, and applies the data set's transforms
/// to the inputs that they hold. By its first bytes, whatever its name, a file is HDF5; .npy, IDX, delimited
/// text or JSON lines, each also in gzip; a picture; a folder or a tar archive of pictures. Text is read as
/// the data set's csv reader reads it; where both this file and the one that was trained on have a header,
/// the columns are found by name. A run without a csv reader takes a first line of names for a header. Throws
/// UserError where `options` are given for what is no text.
std::shared_ptr<const Dataset> open_inputs(const GivenFiles& files, const DatasetSpec& spec,
                                           const std::vector<TensorSpec>& inputs, const TextOptions& options);

/// Opens files that hold inputs and targets (what the losses want), as the run's own reader reads them. Where
/// they have weights of samples, these are a last column, float32. Throws UserError as above, and for a file
/// without targets.
std::shared_ptr<const Dataset> open_labelled(const GivenFiles& files, const DatasetSpec& spec,
                                             const std::vector<TensorSpec>& inputs,
                                             const std::vector<TensorSpec>& targets,
                                             const TextOptions& options);

}  // namespace dtrain
