// Kinds of files that samples come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "config/registry.h"
#include "data/column.h"
#include "data/data_identity.h"
#include "data/readers/csv_table.h"

namespace dtrain {

/// For whom and where a reader opens its files. What `inputs` and `targets` say is what the columns should
/// become once the transforms are done: readers of formats that leave a choice (csv, synthetic) go by it.
struct ReadRequest {
  std::string root;  // names that are no absolute paths are looked up here, then under $DTRAIN_DATA; "":
                     // beside `place`
  Mark place;        // of the split in the configuration
  std::vector<TensorSpec> inputs, targets;
  FieldNames fields;  // of the training file, by which a file with a header is read; empty: as options say

  std::string find(const std::string& file_name) const;
  /// Throws UserError.
  [[noreturn]] void fail(const std::string& message) const;
};

/// A reader's options. Immutable; any thread may open it.
class Reader {
 public:
  virtual ~Reader() = default;
  /// One column for each of the request's inputs and targets, in that order, all of the same number of rows.
  /// Throws UserError with path, what was expected and what was found, for a file that is not what it is said
  /// to be.
  virtual Columns open(const ReadRequest& request) const = 0;
  /// The files it reads, as they are named.
  virtual std::vector<std::string> files() const = 0;
  /// The columns that its options choose (whatever request.fields says); looks at a file's first line at
  /// most.
  virtual FieldNames fields(const ReadRequest& /*request*/) const { return {}; }
  /// How it reads delimited text, if it does.
  virtual std::optional<CsvFormat> text_format() const { return std::nullopt; }
};

template <>
const Registry<Reader>& registry<Reader>();

// Each reader adds itself; readers.cpp lists them.
void add_idx(Registry<Reader>& table);
void add_npy(Registry<Reader>& table);
void add_csv(Registry<Reader>& table);
void add_hdf5(Registry<Reader>& table);
void add_cifar10(Registry<Reader>& table);
void add_synthetic(Registry<Reader>& table);

}  // namespace dtrain
