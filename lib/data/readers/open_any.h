// Opens one file of a format that is known, for `dtrain predict`, which is given a path.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/column.h"
#include "data/readers/csv_table.h"

namespace dtrain {

/// Whether a file that begins so is of the IDX format.
bool is_idx(std::string_view start);
std::shared_ptr<const Column> open_idx(const std::string& path);
std::shared_ptr<const Column> open_npy(const std::string& path);
/// Rows of `dtype` (float32 or int32) that have the named columns of the file. Where the file has no header,
/// or no columns are named, they have all columns.
std::shared_ptr<const Column> open_csv(const std::string& path, DType dtype, const CsvFormat& format,
                                       const std::vector<std::string>& columns);
/// Opens the dataset `name` (a path inside the file); "" stands for the only one at the top of the file.
std::shared_ptr<const Column> open_hdf5(const std::string& path, const std::string& name);

}  // namespace dtrain
