// Replaces missing values (NaN) with numbers.
#pragma once

#include <vector>

#include "data/columns/column_stage.h"

namespace dtrain {

/// Replaces NaN in element i of a float32 or float64 row with values[i].
class FillStage final : public ColumnStage {
 public:
  FillStage(const TensorSpec& input, std::vector<double> values)
      : ColumnStage(input, input), values_(std::move(values)) {}
  void run(const StageInput& rows, void* dst) const override;
  bool is_costly() const override { return false; }

 private:
  template <class T>
  void run_as(const StageInput& rows, T* dst) const;

  std::vector<double> values_;
};

}  // namespace dtrain
