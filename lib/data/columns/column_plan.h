// Converts a column's stored rows to batch rows in as few passes as possible.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/tensor_spec.h"
#include "data/columns/column_stage.h"
#include "data/columns/gather.h"

namespace dtrain {

/// The steps from the stored rows of a column to transformed rows. Transforms build the plan: each adds a
/// step that starts from spec(). Any number of threads may then run the plan. Consecutive affine maps and the
/// conversions around them become one pass, which also gathers the rows.
class ColumnPlan {
 public:
  explicit ColumnPlan(TensorSpec stored) : stored_(stored), spec_(std::move(stored)) {}

  const TensorSpec& stored() const { return stored_; }
  /// Returns the type and shape of a row after the steps added so far.
  const TensorSpec& spec() const { return spec_; }

  /// Changes the shape; the number of elements must stay the same.
  void reshape(Shape shape) { spec_.shape = std::move(shape); }
  void rename(std::string name) { spec_.name = std::move(name); }
  /// Adds y = scale * x + offset as AffineStage computes it. Both vectors have one element, or one per
  /// channel (the last axis). Throws UserError if a number does not fit float32.
  void affine(std::vector<double> scale, std::vector<double> offset);
  /// Adds a conversion as AffineStage::cast does.
  void cast(DType type);
  /// Adds a separate pass, whose input is spec().
  void add(std::shared_ptr<const ColumnStage> stage);

  /// Returns true if rows are copied unchanged.
  bool is_copy() const { return stages_.empty(); }
  /// Returns the plan as one affine map to float32 that needs no double precision (empty for a plain copy),
  /// or nullopt if the plan is not such a map.
  std::optional<Affine> map() const;
  /// Returns the same map in double, whatever precision it needs.
  std::optional<ExactAffine> exact_map() const;
  /// Returns whether any stage draws random numbers.
  bool is_random() const;
  /// Returns whether any stage is costly (ColumnStage::is_costly).
  bool is_costly() const;
  /// Returns the most bytes per row that run() needs besides its input and its result.
  size_t working_bytes() const;
  /// Reads rows of type and shape `stored()` and writes rows of `spec()` contiguously to `dst`.
  void run(const StageInput& rows, void* dst) const;

 private:
  TensorSpec stored_, spec_;
  std::vector<std::shared_ptr<const ColumnStage>> stages_;
};

}  // namespace dtrain
