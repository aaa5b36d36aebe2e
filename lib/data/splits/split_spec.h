// One split of a `dataset:` as a configuration says it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "config/registry.h"

namespace dtrain {

class Reader;  // readers/reader.h

/// `split: {of: train, fraction: 0.15, stratify: true, seed: 1}`: samples that are drawn from another
/// split's, which keeps what is left.
struct DrawnSplit {
  std::string of;
  double fraction = 0;
  bool stratify = false;
  std::optional<int64_t> seed = {};  // unset: the run's

  static const Schema<DrawnSplit>& schema();
};

/// `target: {input: image}`: a target that is an input, as that is after the transforms.
struct InputTarget {
  std::string target;  // "" of a lone one
  std::string input;
  Mark mark;
};

struct SplitSpec {
  Configured<Reader> reader;  // of a drawn split the other's, once all of the data set is known
  std::optional<std::vector<int64_t>> rows;  // [from, to)
  Mark mark;
  std::optional<DrawnSplit> drawn;
  std::vector<InputTarget> input_targets;

  /// The one of this target; null where the reader reads it.
  const InputTarget* find_input_target(const std::string& target) const;
  /// The targets that the reader reads; the others are inputs.
  std::vector<TensorSpec> targets_to_read(const std::vector<TensorSpec>& targets) const;
};

template <>
struct Codec<SplitSpec> {
  static bool parse(const ConfigNode& node, const std::string& where, SplitSpec& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const SplitSpec& split);
  static Json schema();
};

}  // namespace dtrain
