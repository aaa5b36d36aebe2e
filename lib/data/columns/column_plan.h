// What happens to a column between the file and the batch, in as few passes as that takes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/tensor_spec.h"
#include "data/columns/column_stage.h"
#include "data/columns/gather.h"

namespace dtrain {

/// Transforms build the plan, each adding to what `spec()` says so far; then any number of threads run it.
/// Affine maps in a row, and the conversions around them, become one pass, which gathers the rows as well.
class ColumnPlan {
 public:
  explicit ColumnPlan(TensorSpec stored) : stored_(stored), spec_(std::move(stored)) {}

  const TensorSpec& stored() const { return stored_; }
  /// A row after the steps so far.
  const TensorSpec& spec() const { return spec_; }

  /// Changes the shape to one of as many elements.
  void reshape(Shape shape) { spec_.shape = std::move(shape); }
  void rename(std::string name) { spec_.name = std::move(name); }
  /// Adds y = scale * x + offset, as AffineStage computes it: both of one element, or of one for each channel
  /// (the last axis). Throws UserError where a number does not fit float32.
  void affine(std::vector<double> scale, std::vector<double> offset);
  /// Adds a conversion, as AffineStage::cast.
  void cast(DType type);
  /// Adds a pass of its own, whose input is spec().
  void add(std::shared_ptr<const ColumnStage> stage);

  /// Whether rows come out as they went in.
  bool is_copy() const { return stages_.empty(); }
  /// All there is to do, where that is one affine map to float32 that needs no double precision, or nothing
  /// (then of no elements).
  std::optional<Affine> map() const;
  /// The same in double, whatever precision it needs.
  std::optional<ExactAffine> exact_map() const;
  /// As of any of its stages.
  bool is_random() const;
  bool is_costly() const;
  /// The most bytes a row that run() needs besides its input and its result.
  size_t working_bytes() const;
  /// Reads rows of type and shape `stored()` and writes those of `spec()` to `dst`, one after the other.
  void run(const StageInput& rows, void* dst) const;

 private:
  TensorSpec stored_, spec_;
  std::vector<std::shared_ptr<const ColumnStage>> stages_;
};

}  // namespace dtrain
