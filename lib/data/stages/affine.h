// Affine maps and conversions of type: the stage that is one pass with the gathering of rows.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/column_stage.h"
#include "data/gather.h"

namespace dtrain {

/// y = scale * x + offset in float32, then perhaps a conversion to integers. Affine maps in a row become one.
class AffineStage final : public ColumnStage {
 public:
  /// The identity, to float32.
  explicit AffineStage(const TensorSpec& input);

  /// Whether more can follow in the same pass: the result is float32 still.
  bool is_open() const { return output().dtype == DType::float32; }
  /// This stage, and scale * y + offset after it: both of one element, or of one for each channel (the last
  /// axis). Throws UserError where a number does not fit float32.
  std::shared_ptr<const AffineStage> then(std::vector<double> scale, std::vector<double> offset) const;
  /// This stage with a result of another type: towards zero; what does not fit becomes the nearest value that
  /// does, and NaN zero.
  std::shared_ptr<const AffineStage> cast(DType type) const;
  /// The map to float32; nothing where the result is of another type. Valid as long as the stage lives.
  std::optional<Affine> map() const;

  void run(const StageInput& rows, void* dst) const override;
  bool is_costly() const override { return false; }

 private:
  AffineStage(const AffineStage& other, DType type);
  template <class T>
  void run_cast(const StageInput& rows, T* dst) const;
  template <class T>
  void run_exact_cast(const StageInput& rows, T* dst) const;

  int64_t elements() const { return input().shape.elements(); }

  std::vector<double> scale_{1.0}, offset_{0.0};  // of one element, or of a row's
  std::vector<float> run_scale_{1.0f}, run_offset_{0.0f};
};

}  // namespace dtrain
