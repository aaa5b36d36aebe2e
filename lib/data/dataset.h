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
#include "data/columns/samples.h"
#include "data/data_facts.h"
#include "data/splits/data_identity.h"

namespace dtrain {

/// How a column is stored, where what the data set makes of it is one affine map: whoever the samples go to
/// can apply the map there, and fewer bytes have to go. float32 = scale * stored + offset; where both are
/// empty the column is what is stored.
struct StoredForm {
  DType dtype = DType::float32;
  std::vector<float> scale, offset;  // of one element, or of one for each element of a row
};

/// Random access to the samples of one split, transforms applied. Safe to read from several threads at once.
/// Reading throws UserError where a file holds something else than it is said to, and Error where it cannot
/// be read or has changed.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// One entry for each array of a sample: the model's inputs in the model's order, then the targets.
  virtual const std::vector<TensorSpec>& columns() const = 0;
  /// Copies the samples, converted to each view's dtype (which is its column's), into `dst`: one view a
  /// column, of shape [samples.size(), ...]. A view without data is of a column that is not wanted.
  virtual void read(const Samples& samples, std::span<const View> dst) const = 0;
  /// Copies one column of the samples.
  virtual void read_column(size_t index, const Samples& samples, void* dst) const = 0;
  /// Nothing where the column is more than an affine map of what is stored.
  virtual std::optional<StoredForm> stored_form(size_t /*index*/) const { return std::nullopt; }
  /// Copies one column of the samples as it is stored; only for columns that have a stored_form().
  virtual void read_stored(size_t /*index*/, std::span<const int64_t> /*rows*/, void* /*dst*/) const {}
  /// The bytes of all samples: of a column that has a stored_form() as it is stored, of others as they are
  /// read.
  size_t stored_bytes() const;
  /// What the samples are, by which a run notices that it goes on with others. Reads samples of the files'
  /// content.
  virtual DataIdentity identity() const { return {}; }
  /// The numbers that the samples have in the files, in their order.
  virtual std::vector<int64_t> rows_in_files() const;
  /// What it was read by: of the training split what others are to be read by.
  virtual DataFacts facts() const { return {}; }
  /// Whether samples have names of their own; else they are told apart by their numbers only.
  virtual bool has_ids() const { return false; }
  /// What sample_id() gives: the name of the column of ids, "path" of a picture; "row" without ids.
  virtual std::string id_title() const { return "row"; }
  virtual std::string sample_id(int64_t index) const { return std::to_string(index); }
  /// What the user should know of the samples, a sentence each.
  virtual std::vector<std::string> warnings() const { return {}; }
  /// The sample as messages call it: its id, or "row 17" (from 0, in the file).
  std::string sample_name(int64_t index) const;
  /// Whether all samples are to be kept in the memory of the devices that they go to.
  virtual bool on_device() const { return false; }
  /// Whether the samples, as they are stored, need no file: they are in memory, or a few instructions make
  /// them.
  virtual bool in_memory() const = 0;
  /// Whether making samples of what is stored costs much more than copying them.
  virtual bool is_costly() const { return false; }
  /// The most bytes that reading `samples` samples takes besides the destination.
  virtual size_t working_bytes(int64_t /*samples*/) const { return 0; }
  /// Whether all rows lie one after the other in memory, so that a cache there would take nothing more.
  virtual bool lies_in_memory() const { return false; }
};

}  // namespace dtrain
