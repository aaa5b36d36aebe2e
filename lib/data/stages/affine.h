// Affine maps and conversions of type: the stage that is one pass with the gathering of rows.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/columns/column_stage.h"
#include "data/columns/gather.h"

namespace dtrain {

/// y = scale * x + offset as float32, then perhaps a conversion to integers; or the same as float64. Affine
/// maps in a row become one. Where the offset is large beside the result, as for a table's column of large
/// numbers, y is computed as scale * (x - center), the difference in double, so that no digits of x are lost.
class AffineStage final : public ColumnStage {
 public:
  /// The identity, to float32.
  explicit AffineStage(const TensorSpec& input);

  /// Whether more can follow in the same pass: the result is float32 still.
  bool is_open() const { return output().dtype == DType::float32; }
  /// This stage, and scale * y + offset after it: both of one element, or of one for each channel (the last
  /// axis). Throws UserError where a number does not fit float32.
  std::shared_ptr<const AffineStage> then(std::vector<double> scale, std::vector<double> offset) const;
  /// This stage with a result of another type. To integers: towards zero; what does not fit becomes the
  /// nearest value that does, and NaN zero.
  std::shared_ptr<const AffineStage> cast(DType type) const;
  /// The map to float32, where that needs no double precision; nothing elsewhere, and where the result is of
  /// another type. Valid as long as the stage lives.
  std::optional<Affine> map() const;
  /// The scale and the offset, of one element or of a row's; nothing where the result is of integers. Valid
  /// as long as the stage lives.
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

  std::vector<double> scale_{1.0}, offset_{0.0};  // of one element, or of a row's
  std::vector<float> run_scale_{1.0f}, run_offset_{0.0f};
  std::vector<double> run_center_;  // empty: 0
};

}  // namespace dtrain
