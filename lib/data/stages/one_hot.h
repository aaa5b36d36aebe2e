// Converts labels to one-hot vectors.
#pragma once

#include "data/columns/column_stage.h"

namespace dtrain {

/// Appends an axis with `classes` elements: 1 at the index of the label, 0 at all other indices. Trailing
/// extents of 1 are first removed from the shape of the labels. run() throws UserError if a label is not an
/// integer in [0, classes).
class OneHotStage final : public ColumnStage {
 public:
  OneHotStage(const TensorSpec& input, int64_t classes);
  void run(const StageInput& rows, void* dst) const override;
  bool is_costly() const override { return false; }

 private:
  int64_t classes_;
};

}  // namespace dtrain
