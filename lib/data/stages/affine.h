// Affine maps and type conversions. They are computed in the same pass that gathers the rows.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/columns/column_stage.h"
#include "data/columns/gather.h"

namespace dtrain {

/// Computes y = scale * x + offset as float32, optionally followed by a conversion to integers. Can also
/// compute y as float64. Consecutive affine maps are merged into one.
/// If the offset is much larger than the result, y is computed as scale * (x - center), and the difference is
/// computed in double. Otherwise, digits of x would be lost, for example in a table column of large numbers.
class AffineStage final : public ColumnStage {
 public:
  /// Creates the identity map with a float32 result.
  explicit AffineStage(const TensorSpec& input);

  /// Returns true if the result is float32, so that more steps can be merged into this stage.
  bool is_open() const { return output().dtype == DType::float32; }
  /// Returns this stage followed by scale * y + offset. Both vectors have either one element or one element
  /// per channel (the last axis). Throws UserError if a number is out of the range of float32.
  std::shared_ptr<const AffineStage> then(std::vector<double> scale, std::vector<double> offset) const;
  /// Returns this stage with a different result type. Conversions to integers round toward zero. A value that
  /// is out of range is replaced with the nearest value in range, and NaN is replaced with 0.
  std::shared_ptr<const AffineStage> cast(DType type) const;
  /// Returns the affine map of this stage if its result is float32 and it needs no double precision.
  /// Otherwise returns nullopt. The returned spans are valid while this stage exists.
  std::optional<Affine> map() const;
  /// Returns the scale and the offset, which have either one element or one element per element of a row.
  /// Returns nullopt if the result is not float32. The returned spans are valid while this stage exists.
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
