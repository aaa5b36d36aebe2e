// Random access to the samples of one split.
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

/// Describes how the values of a column are stored, if the column is an affine map of the stored values:
/// float32 = scale * stored + offset. The consumer can apply the map after it has transferred the stored
/// values, so that fewer bytes are transferred. If scale and offset are empty, the column consists of the
/// stored values themselves.
struct StoredForm {
  DType dtype = DType::float32;
  std::vector<float> scale, offset;  // one element each, or one per element of a row
};

/// Random access to the samples of one split, with transforms applied. Safe to read from several threads at
/// once. Reading throws UserError if a file's content is not in the declared format, and Error if a file
/// cannot be read or has changed.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// Returns the name, type and shape of each array of a sample: the model's inputs in the model's order,
  /// then the targets.
  virtual const std::vector<TensorSpec>& columns() const = 0;
  /// Copies the samples into `dst`: one view per column, of the column's dtype and of shape [samples.size(),
  /// ...]. Columns whose view has no data are skipped.
  virtual void read(const Samples& samples, std::span<const View> dst) const = 0;
  /// Copies one column of the samples.
  virtual void read_column(size_t index, const Samples& samples, void* dst) const = 0;
  /// Returns the stored form of a column. Returns nullopt if the column cannot be computed from the stored
  /// values by an affine map.
  virtual std::optional<StoredForm> stored_form(size_t /*index*/) const { return std::nullopt; }
  /// Copies one column of the samples in its stored form; only for columns that have a stored_form().
  virtual void read_stored(size_t /*index*/, std::span<const int64_t> /*rows*/, void* /*dst*/) const {}
  /// Returns the size of all samples in bytes. For a column that has a stored_form(), the size of the stored
  /// type is used. For any other column, the size of the type in which it is read is used.
  size_t stored_bytes() const;
  /// Returns the identity of the samples. With it, a resumed run can detect that the data have changed. Reads
  /// parts of the files.
  virtual DataIdentity identity() const { return {}; }
  /// Returns each sample's row number in the files, in sample order.
  virtual std::vector<int64_t> rows_in_files() const;
  /// Returns the facts with which this split was read. Other splits are read with the training split's facts.
  virtual DataFacts facts() const { return {}; }
  /// Returns true if samples have ids. Samples without ids are identified by their row numbers.
  virtual bool has_ids() const { return false; }
  /// Returns the title of the ids: the name of the id column, "path" for images, "row" if there are no ids.
  virtual std::string id_title() const { return "row"; }
  virtual std::string sample_id(int64_t index) const { return std::to_string(index); }
  /// Returns the number of future rows that are predicted for each sample. Returns 0 unless the samples are
  /// the last windows of time series (a forecast).
  virtual int64_t forecast_steps() const { return 0; }
  /// Returns warnings about the samples, one sentence each.
  virtual std::vector<std::string> warnings() const { return {}; }
  /// Returns the sample's name for messages: its id, or "row 17" (row number in the file, from 0).
  std::string sample_name(int64_t index) const;
  /// Returns true if each device that uses the samples should keep all of them in its memory.
  virtual bool on_device() const { return false; }
  /// Returns true if the stored samples can be read without access to a file, because they are in memory or
  /// are cheap to generate.
  virtual bool in_memory() const = 0;
  /// Returns true if it takes much longer to compute samples from the stored data than to copy finished
  /// samples.
  virtual bool is_costly() const { return false; }
  /// Returns the maximum number of bytes that reading `samples` samples allocates in addition to the
  /// destination.
  virtual size_t working_bytes(int64_t /*samples*/) const { return 0; }
  /// Returns true if all rows are contiguous in memory, so that a memory cache would use no extra memory.
  virtual bool lies_in_memory() const { return false; }
};

}  // namespace dtrain
