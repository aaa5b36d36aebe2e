// What layers share that only give their input another shape.
#pragma once

#include "nn/layer.h"

namespace dtrain {

/// For layers whose output is their plain input under another shape.
class PreparedView : public PreparedLayer {
 public:
  PreparedView() { requirements_.is_view = true; }
  void forward(const LayerArguments&) override {}  // never called
};

}  // namespace dtrain
