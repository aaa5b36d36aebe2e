// Converts the stored rows of a column to rows of a batch, in as few passes as possible.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/tensor_spec.h"
#include "data/columns/column_stage.h"
#include "data/columns/gather.h"

namespace dtrain {

/// The steps that convert the stored rows of a column to transformed rows. Transforms build the plan: each
/// transform adds a step whose input is spec(). After that, any number of threads may run the plan.
/// Consecutive affine maps and conversions are merged into one pass, which also gathers the rows.
class ColumnPlan {
 public:
  explicit ColumnPlan(TensorSpec stored) : stored_(stored), spec_(std::move(stored)) {}

  const TensorSpec& stored() const { return stored_; }
  /// Returns the type and shape of a row after the steps added so far.
  const TensorSpec& spec() const { return spec_; }

  /// Changes the shape. The number of elements must stay the same.
  void reshape(Shape shape) { spec_.shape = std::move(shape); }
  void rename(std::string name) { spec_.name = std::move(name); }
  /// Adds y = scale * x + offset (see AffineStage). Both vectors have either one element or one element per
  /// channel (the last axis). Throws UserError if a number is out of the range of float32.
  void affine(std::vector<double> scale, std::vector<double> offset);
  /// Adds a conversion to a different type (see AffineStage::cast).
  void cast(DType type);
  /// Adds a stage that is a separate pass. The input of the stage must have the type and shape spec().
  void add(std::shared_ptr<const ColumnStage> stage);

  /// Returns true if rows are copied unchanged.
  bool is_copy() const { return stages_.empty(); }
  /// Returns the plan as one affine map to float32. The map is empty if rows are copied unchanged. Returns
  /// nullopt if the plan has other stages, if its result is not float32, or if the map needs double
  /// precision.
  std::optional<Affine> map() const;
  /// Like map(), but in double. Also returns maps that need double precision.
  std::optional<ExactAffine> exact_map() const;
  /// Returns true if any stage draws random numbers.
  bool is_random() const;
  /// Returns true if any stage is costly (ColumnStage::is_costly).
  bool is_costly() const;
  /// Returns the maximum number of bytes per row that run() allocates in addition to its input and its
  /// result.
  size_t working_bytes() const;
  /// Reads rows of type and shape `stored()` and writes rows of `spec()` contiguously to `dst`.
  void run(const StageInput& rows, void* dst) const;

 private:
  TensorSpec stored_, spec_;
  std::vector<std::shared_ptr<const ColumnStage>> stages_;
};

}  // namespace dtrain
