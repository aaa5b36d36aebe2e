// `model.weights`: the pretrained weights with which training starts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/patterns.h"
#include "config/schema.h"

namespace dtrain {

/// Maps names of weights in a file (left) to names of weights in this model (right). A name may be a pattern:
/// the `*` on the right is replaced by the text that the `*` on the left matched.
struct Renames {
  std::vector<std::pair<ConfigNode, ConfigNode>> items;  // pairs of scalars

  /// Converts the name of a weight in the file to its name in this model. The first pattern that matches
  /// determines the new name. If no pattern matches, the name is unchanged.
  std::string apply(const std::string& name) const;
};

template <>
struct Codec<Renames> {
  static bool parse(const ConfigNode& node, const std::string& where, Renames& out, Diagnostics& diagnostics);
  static ConfigNode write(const Renames& value);
  static Json schema();
};

/// The `weights:` option of a model. All patterns match names of weights, such as "dense_1/kernel".
struct PretrainedWeights {
  std::string from;  // path; absolute after parse_model()
  Renames rename;
  std::optional<Patterns> skip;    // weights of this model that are initialized instead of loaded
  std::optional<Patterns> unused;  // weights of the file that are ignored
  Mark mark;
  static const Schema<PretrainedWeights>& schema();
};

}  // namespace dtrain
