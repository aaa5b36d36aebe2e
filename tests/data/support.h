// Files and data sets for tests of lib/data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "data/dataset_spec.h"
#include "data/given_file.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "support/text.h"

namespace dtrain::test {

std::string gzip_of(const std::string& bytes);
void write_gzip(const std::string& path, const std::string& bytes);

/// Returns an IDX file with unsigned bytes of this shape.
std::string idx_bytes(const std::vector<uint32_t>& shape, const std::string& values);
/// Returns an .npy file.
std::string npy_bytes(const std::string& descr, const std::string& shape, const std::string& values,
                      const std::string& order = "False");
/// Returns the bytes of a value in memory.
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// Parses the text of a `dataset:` section as if it were the file dataset.yaml in the folder. Throws
/// UserError with all mistakes.
DatasetSpec parse(const TempDir& folder, const std::string& yaml);

/// Reads rows of one column as doubles.
std::vector<double> read_rows(const Dataset& dataset, const std::vector<int64_t>& rows, size_t column);
/// Reads all rows of one column.
std::vector<double> read_all(const Dataset& dataset, size_t column);

/// Returns the file as GivenFiles, as if it were named on the command line.
inline GivenFiles given(const std::string& path) {
  return open_given_files({path});
}

}  // namespace dtrain::test
