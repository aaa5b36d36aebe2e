// What is known of an array before it exists.
#pragma once

#include <string>

#include "base/dtype.h"
#include "base/shape.h"

namespace dtrain {

/// The `shape` is that of one sample: it leaves out the batch axis.
struct TensorSpec {
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
};

}  // namespace dtrain
