// `model.weights`: which of a file's weights a model begins with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/patterns.h"
#include "config/schema.h"

namespace dtrain {

/// Names of a file's weights, or patterns over them, and what this model calls those. What a `*` on the left
/// stands for, the `*` on the right becomes.
struct Renames {
  std::vector<std::pair<ConfigNode, ConfigNode>> items;  // scalars

  /// What this model calls the file's weight: by the first pattern that matches, else its own name.
  std::string apply(const std::string& name) const;
};

template <>
struct Codec<Renames> {
  static bool parse(const ConfigNode& node, const std::string& where, Renames& out, Diagnostics& diagnostics);
  static ConfigNode write(const Renames& value);
  static Json schema();
};

/// All patterns are over names of weights: "dense_1/kernel".
struct PretrainedWeights {
  std::string from;  // a path; absolute once the model is parsed
  Renames rename;
  std::optional<Patterns> skip;    // of this model: those begin anew
  std::optional<Patterns> unused;  // of the file: nobody wants those
  Mark mark;
  static const Schema<PretrainedWeights>& schema();
};

}  // namespace dtrain
