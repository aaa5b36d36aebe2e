// Samples by number: what a split of a data set is to the rest of the program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "base/view.h"

namespace dtrain {

/// Random access to the samples of one split, transforms applied. Safe to read from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// One entry an array of a sample: the model's inputs in the model's order, then the targets.
  virtual const std::vector<TensorSpec>& columns() const = 0;
  /// Copies the samples `rows` (each in [0, size())), converted to each view's dtype (which is its column's),
  /// into `dst`: one view a column, of shape [rows.size(), ...].
  virtual void read(std::span<const int64_t> rows, std::span<const View> dst) const = 0;
  /// Reading costs no more than a gather from memory (or a few instructions an element): there is nothing to
  /// prefetch.
  virtual bool in_memory() const = 0;
};

}  // namespace dtrain
