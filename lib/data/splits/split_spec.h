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

/// A split that takes a fraction of the samples of another split: `split: {of: train, fraction: 0.15,
/// stratify: true, seed: 1}`. The other split keeps the remaining samples. Samples are drawn at random, with
/// two exceptions: for windows of time series, each split gets a part of the time range of every series; for
/// samples that are parts of one text, each split gets consecutive samples.
struct DrawnSplit {
  std::string of;
  double fraction = 0;
  bool stratify = false;
  std::optional<int64_t> seed = {};  // if not set, the run's seed is used

  static const Schema<DrawnSplit>& schema();
};

/// A target that is equal to an input after the transforms: `target: {input: image}`.
struct InputTarget {
  std::string target;  // name of the target; "" for the model's only target
  std::string input;
  Mark mark;
};

struct SplitSpec {
  // The reader of the split. If `drawn` is set, parsing copies it from the split from which this one is
  // drawn.
  Configured<Reader> reader;
  std::optional<std::vector<int64_t>> rows;  // range [from, to) of rows
  /// Not set if each sample is one row. If `drawn` is set, parsing copies the windows like the reader.
  std::optional<WindowsOptions> windows;
  Mark mark;
  std::optional<DrawnSplit> drawn;
  std::vector<InputTarget> input_targets;

  /// Returns the entry for this target if the target is an input. Returns null if the reader reads the
  /// target.
  const InputTarget* find_input_target(const std::string& target) const;
  /// Returns the targets that the reader must read. Targets that are inputs are left out.
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
