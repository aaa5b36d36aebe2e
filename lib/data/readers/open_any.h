// The readers' own ways into one file, for `dtrain predict`, which is given a path and no options.
#pragma once

#include <memory>
#include <string>

#include "data/column.h"

namespace dtrain {

std::shared_ptr<const Column> open_idx(const std::string& path);
std::shared_ptr<const Column> open_npy(const std::string& path);
/// All columns of the file as rows of `dtype` (float32 or int32); a first line that is no numbers is a
/// header.
std::shared_ptr<const Column> open_csv(const std::string& path, DType dtype);
/// The dataset `name` (a path inside the file); "": the only one at the top of the file.
std::shared_ptr<const Column> open_hdf5(const std::string& path, const std::string& name);

}  // namespace dtrain
