// The description of an array.
#pragma once

#include <string>

#include "base/dtype.h"
#include "base/shape.h"

namespace dtrain {

/// The name, shape and type of a tensor. `shape` is the shape of one sample, without the batch axis.
struct TensorSpec {
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
};

}  // namespace dtrain
