// Affine maps and type conversions, done in the same pass as gathering the rows.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/columns/column_stage.h"
#include "data/columns/gather.h"

namespace dtrain {

/// Computes y = scale * x + offset as float32, optionally followed by a conversion to integers; or computes y
/// as float64. Consecutive affine maps are merged into one. If the offset is large compared to the result, as
/// for a table column of large numbers, y is computed as scale * (x - center) with the difference in double,
/// so that no digits of x are lost.
class AffineStage final : public ColumnStage {
 public:
  /// Makes the identity map, whose result is float32.
  explicit AffineStage(const TensorSpec& input);

  /// Returns true if the result is float32, so that more steps can be merged into this stage.
  bool is_open() const { return output().dtype == DType::float32; }
  /// Returns this stage followed by scale * y + offset. Both vectors have one element, or one per channel
  /// (the last axis). Throws UserError if a number does not fit float32.
  std::shared_ptr<const AffineStage> then(std::vector<double> scale, std::vector<double> offset) const;
  /// Returns this stage with another result type. Conversions to integers round toward zero; a value out of
  /// range becomes the nearest value in range, and NaN becomes 0.
  std::shared_ptr<const AffineStage> cast(DType type) const;
  /// Returns the map to float32; nullopt if it needs double precision or if the result is of another type.
  /// Valid while the stage lives.
  std::optional<Affine> map() const;
  /// Returns scale and offset, with one element each or one per element of a row; nullopt if the result is
  /// not float32. Valid while the stage lives.
  std::optional<ExactAffine> exact_map() const;

  void run(const StageInput& rows, void* dst) const override;
  bool is_costly() const override { return false; }

 private:
  AffineStage(const AffineStage& other, DType type);
  Affine run_map() const { return {run_scale_, run_offset_, run_center_}; }
  void run_in_double(const StageInput& rows, double* dst) const;
  template <class T>
  void run_cast(const StageInput& rows, T* dst) const;
  template <class T>
  void run_exact_cast(const StageInput& rows, T* dst) const;

  int64_t elements() const { return input().shape.elements(); }

  std::vector<double> scale_{1.0}, offset_{0.0};  // one element each, or one per element of a row
  std::vector<float> run_scale_{1.0f}, run_offset_{0.0f};
  std::vector<double> run_center_;  // empty if all centers are 0
};

}  // namespace dtrain
