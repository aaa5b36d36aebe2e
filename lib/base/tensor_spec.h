// The description of an array.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace dtrain {

/// The name, shape and type of a tensor. `shape` is the shape of one sample, without the batch axis.
struct TensorSpec {
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
};

inline std::vector<std::string> spec_names(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return names;
}

}  // namespace dtrain
