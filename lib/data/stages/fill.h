// Numbers in the place of gaps.
#pragma once

#include <vector>

#include "data/column_stage.h"

namespace dtrain {

/// NaN in element i of a float32 row becomes values[i].
class FillStage final : public ColumnStage {
 public:
  FillStage(const TensorSpec& input, std::vector<float> values)
      : ColumnStage(input, input), values_(std::move(values)) {}
  void run(const StageInput& rows, void* dst) const override;
  bool is_costly() const override { return false; }

 private:
  std::vector<float> values_;
};

}  // namespace dtrain
