// Several data sets, one after the other.
#pragma once

#include <memory>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// The samples of all parts in order; of a single part, that part. All parts have the same columns. Samples
/// have ids where those of all parts have; else they are numbered through, from 0.
std::shared_ptr<const Dataset> chain_datasets(std::vector<std::shared_ptr<const Dataset>> parts);

}  // namespace dtrain
