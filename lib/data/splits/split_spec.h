// One split of a `dataset:` section.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "config/registry.h"
#include "data/windows/windows_options.h"

namespace dtrain {

class Reader;  // readers/reader.h

/// `split: {of: train, fraction: 0.15, stratify: true, seed: 1}`: samples drawn at random from another split,
/// which keeps the rest. Windows are not drawn at random: each split takes a part of every series in time.
struct DrawnSplit {
  std::string of;
  double fraction = 0;
  bool stratify = false;
  std::optional<int64_t> seed = {};  // unset for the run's seed

  static const Schema<DrawnSplit>& schema();
};

/// `target: {input: image}`: a target that is the input in its form after the transforms.
struct InputTarget {
  std::string target;  // name of the target; "" for the model's only target
  std::string input;
  Mark mark;
};

struct SplitSpec {
  // The reader of the split; for a drawn split, the reader of its source, set after parsing.
  Configured<Reader> reader;
  std::optional<std::vector<int64_t>> rows;  // range [from, to) of rows
  /// Unset if a sample is one row. A drawn split gets the windows of its source split after parsing.
  std::optional<WindowsOptions> windows;
  Mark mark;
  std::optional<DrawnSplit> drawn;
  std::vector<InputTarget> input_targets;

  /// Returns the entry of this target; null if the reader reads the target.
  const InputTarget* find_input_target(const std::string& target) const;
  /// Returns the targets that the reader reads, without those that are inputs.
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
