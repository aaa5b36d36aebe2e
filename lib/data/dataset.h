// Samples by number: what a split of a data set is to the rest of the program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "base/view.h"
#include "data/data_identity.h"

namespace dtrain {

/// How a column is stored, where what the data set makes of it is no more than this map: whoever the samples
/// go to can do it there, on fewer bytes. float32 = scale * stored + offset; as stored where these are empty.
struct StoredForm {
  DType dtype = DType::float32;
  std::vector<float> scale, offset;  // of one element, or of one for each element of a row
};

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
  /// The same of one column.
  virtual void read_column(size_t index, std::span<const int64_t> rows, void* dst) const = 0;
  /// Nothing where the column is more than a map of what is stored.
  virtual std::optional<StoredForm> stored_form(size_t /*index*/) const { return std::nullopt; }
  /// The same rows of one column as they are stored.
  virtual void read_stored(size_t /*index*/, std::span<const int64_t> /*rows*/, void* /*dst*/) const {}
  /// What all samples take as stored (where a column is more than a map of that, as it is given).
  size_t stored_bytes() const;
  /// What the samples are, for noticing that a run goes on with others. Reads samples of the files' content.
  virtual DataIdentity identity() const { return {}; }
  /// All samples are to be kept in the memory of the devices that they go to.
  virtual bool on_device() const { return false; }
  /// Reading costs no more than a gather from memory (or a few instructions an element): there is nothing to
  /// prefetch.
  virtual bool in_memory() const = 0;
  /// All rows lie one after the other in memory: a cache there would take nothing more.
  virtual bool lies_in_memory() const { return false; }
};

}  // namespace dtrain
