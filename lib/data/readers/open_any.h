// The readers' own ways into one file, for `dtrain predict`, which is given a path.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/column.h"
#include "data/readers/csv_table.h"

namespace dtrain {

std::shared_ptr<const Column> open_idx(const std::string& path);
std::shared_ptr<const Column> open_npy(const std::string& path);
/// These columns of the file as rows of `dtype` (float32 or int32), where the file has a header; all columns
/// where it has none, or none are named.
std::shared_ptr<const Column> open_csv(const std::string& path, DType dtype, const CsvFormat& format,
                                       const std::vector<std::string>& columns);
/// The dataset `name` (a path inside the file); "": the only one at the top of the file.
std::shared_ptr<const Column> open_hdf5(const std::string& path, const std::string& name);

}  // namespace dtrain
