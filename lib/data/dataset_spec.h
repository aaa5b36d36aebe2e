// The `dataset:` part of a configuration, checked without touching a file; and from it, the splits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/kinds.h"
#include "data/dataset.h"

namespace dtrain {

class Reader;     // readers/reader.h: idx, csv, npy, hdf5, cifar10, synthetic
class Transform;  // transforms/transform.h: reshape, rescale, cast, normalize, one_hot
class Cache;      // cache.h: none, memory, file, device
template <>
const KindTable<Cache>& kinds<Cache>();

struct SplitSpec {
  Kind<Reader> reader;
  std::optional<std::vector<int64_t>> rows;  // [from, to)
  Mark mark;
};

struct DatasetSpec {
  std::string root;  // absolute: where relative file names are looked up first, then under $DTRAIN_DATA
  std::optional<SplitSpec> train, validation, test;
  std::vector<Kind<Transform>> transforms;  // applied to the inputs (one_hot: to the target)
  bool shuffle = true;                      // the training split only
  Kind<Cache> cache = kinds<Cache>().make("none");
  int64_t prefetch = 2;
  Node resolved;  // as `config.yaml` of the run directory says it: defaults written out, root absolute

  const SplitSpec* find(
      const std::string& split) const;  // "train", "validation", "test"; null where not given
};

/// Null on mistakes (reported).
std::optional<DatasetSpec> parse_dataset(const Node& node, Diagnostics& diagnostics);
Json dataset_json_schema();

/// Opens a split for a model: looks at the files (headers; everything, where the cache is memory), and checks
/// that what they hold, after the transforms, fits `inputs` (the model's, in order) and `targets` (what the
/// losses want: shape, dtype; integer labels are checked against nothing here). Conversion between dtypes is
/// implied where it loses nothing (uint8 to float32 or int32; int32 labels to float32). Throws UserError with
/// the path, what was expected and what was found, and the place in the configuration.
std::shared_ptr<const Dataset> open_split(const DatasetSpec& spec, const SplitSpec& split,
                                          const std::vector<TensorSpec>& inputs,
                                          const std::vector<TensorSpec>& targets);

/// For `dtrain predict`: a file (.h5, .npy, .csv, .idx; .gz of the last two) that holds inputs only, with the
/// data set's transforms.
std::shared_ptr<const Dataset> open_inputs(const std::string& path,
                                           const std::vector<Kind<Transform>>& transforms,
                                           const std::vector<TensorSpec>& inputs);

}  // namespace dtrain
