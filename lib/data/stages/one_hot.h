// Converts labels to one-hot vectors.
#pragma once

#include "data/columns/column_stage.h"

namespace dtrain {

/// Appends an axis with `classes` elements: 1 at the label's index, 0 elsewhere. Trailing extents of 1 in the
/// labels' shape are dropped. run() throws UserError for a label that is not an integer in [0, classes).
class OneHotStage final : public ColumnStage {
 public:
  OneHotStage(const TensorSpec& input, int64_t classes);
  void run(const StageInput& rows, void* dst) const override;
  bool is_costly() const override { return false; }

 private:
  int64_t classes_;
};

}  // namespace dtrain
