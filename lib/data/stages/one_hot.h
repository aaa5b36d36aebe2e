// Labels to vectors of zeros and a one.
#pragma once

#include "data/columns/column_stage.h"

namespace dtrain {

/// A last axis more: 1 at the label's place, 0 elsewhere. Labels in a column of their own (extents of 1 at
/// the end) lose these extents. Running throws UserError for a label that is no integer in [0, classes).
class OneHotStage final : public ColumnStage {
 public:
  OneHotStage(const TensorSpec& input, int64_t classes);
  void run(const StageInput& rows, void* dst) const override;
  bool is_costly() const override { return false; }

 private:
  int64_t classes_;
};

}  // namespace dtrain
