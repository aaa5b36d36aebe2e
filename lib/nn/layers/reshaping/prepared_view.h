// The computation of layers that only reshape their input.
#pragma once

#include "nn/layer.h"

namespace dtrain {

/// A layer whose output is a view of its plain input with another shape.
class PreparedView : public PreparedLayer {
 public:
  PreparedView() { requirements_.is_view = true; }
  void forward(const LayerArguments&) override {}  // never called
};

}  // namespace dtrain
