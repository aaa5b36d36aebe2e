// What happens to a column between the file and the batch, in as few passes as that takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/tensor_spec.h"
#include "data/gather.h"

namespace dtrain {

/// Built by transforms, each of which adds to what `spec()` says so far; then run by any number of threads.
/// Affine maps in a row, and the conversions around them, become one pass.
class ColumnPlan {
 public:
  explicit ColumnPlan(TensorSpec stored) : stored_(stored), spec_(std::move(stored)) {}

  const TensorSpec& stored() const { return stored_; }
  /// A row after the steps so far.
  const TensorSpec& spec() const { return spec_; }

  /// The elements stay; their number must.
  void reshape(Shape shape) { spec_.shape = std::move(shape); }
  void rename(std::string name) { spec_.name = std::move(name); }
  /// y = scale * x + offset, in float32: both of one element, or of one for each channel (the last axis).
  /// Throws UserError where a number does not fit float32.
  void affine(std::vector<double> scale, std::vector<double> offset);
  /// Towards zero; what does not fit becomes the nearest value that does, and NaN zero.
  void cast(DType type);
  /// An axis more: 1 at the value's place, 0 elsewhere. The values must be integers in [0, classes).
  void one_hot(int64_t classes);

  /// Rows come out as they went in.
  bool is_copy() const { return stages_.empty(); }
  /// All there is to do, where that is one map to float32, or nothing (then of no elements).
  std::optional<Affine> map() const;
  /// Reads rows of the array at `base` (of type and shape `stored()`) and writes them to `dst`, one after the
  /// other.
  void run(const void* base, std::span<const int64_t> rows, void* dst) const;

 private:
  struct Stage {
    DType from, to;
    std::vector<double> scale{1.0}, offset{0.0};  // of one element, or of a row's
    std::vector<float> run_scale{1.0f}, run_offset{0.0f};
    int64_t classes = 0;   // one_hot
    int64_t elements = 1;  // of a row, on the way in

    size_t out_bytes() const;
    void run(const void* base, std::span<const int64_t> rows, void* dst) const;
    void run_cast(const void* base, std::span<const int64_t> rows, void* dst) const;
    void run_one_hot(const void* base, std::span<const int64_t> rows, float* dst) const;
  };
  /// The last stage if more can be done in its pass, else a new one.
  Stage& open_stage();

  TensorSpec stored_, spec_;
  std::vector<Stage> stages_;
};

}  // namespace dtrain
