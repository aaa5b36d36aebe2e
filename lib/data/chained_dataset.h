// Concatenates data sets.
#pragma once

#include <memory>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// Returns a data set with the samples of all parts in order, or the part itself if there is only one. All
/// parts must have the same columns. Samples have ids only if the samples of all parts have ids; otherwise
/// they are numbered from 0 across the parts.
std::shared_ptr<const Dataset> chain_datasets(std::vector<std::shared_ptr<const Dataset>> parts);

}  // namespace dtrain
