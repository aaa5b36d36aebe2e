// Opens and checks the data of a run before it trains.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/run_config.h"

namespace dtrain {

struct CheckedSplit {
  std::string name;
  int64_t samples = 0;
  std::shared_ptr<const Dataset> data;  // null for the test split, which training does not open
};

struct CheckedData {
  std::vector<CheckedSplit> splits;  // the training split comes first
  DataFacts facts;                   // facts of the training split
};

/// Opens every split of the data set and looks for samples that cannot be trained on. Calls `warn` once for
/// each message. Throws UserError with the errors of all splits together. `cache`: checked in place of the
/// cache of `config`, but not used.
CheckedData check_splits(const RunConfig& config, const Configured<Cache>& cache,
                         const std::function<void(const std::string&)>& warn);

}  // namespace dtrain
