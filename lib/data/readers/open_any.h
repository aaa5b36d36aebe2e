// Opens one file of a known format. Used for the files that `dtrain predict` gets.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/column.h"
#include "data/readers/csv/table.h"

namespace dtrain {

/// The precision with which the numbers of an array are read. With `computed`, numbers are converted to the
/// types with which dtrain computes (float32, int32, uint8). With `all`, they are converted to float64, so
/// that different times, and different numbers that identify series, remain distinct.
enum class Digits { computed, all };

/// Returns true if a file with this beginning is in the IDX format.
bool is_idx(std::string_view start);
std::shared_ptr<const Column> open_idx(const std::string& path);
std::shared_ptr<const Column> open_npy(const std::string& path, Digits digits = Digits::computed);
/// Opens the columns `columns` of a CSV file as rows of type `dtype` (float32 or int32). If the file has no
/// header, or if `columns` is empty, the rows contain all columns.
std::shared_ptr<const Column> open_csv(const std::string& path, DType dtype, const CsvFormat& format,
                                       const std::vector<std::string>& columns);
/// Opens the dataset `name` (a path inside the file); "" selects the only dataset at the top level of the
/// file.
std::shared_ptr<const Column> open_hdf5(const std::string& path, const std::string& name,
                                        Digits digits = Digits::computed);

}  // namespace dtrain
