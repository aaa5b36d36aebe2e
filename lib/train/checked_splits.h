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

/// Opens every split of the data set, checks the samples, and returns the splits. The training split comes
/// first; its facts are stored in `config`. Calls `warn` once for each warning. Throws a UserError with the
/// errors of all splits. `cache`: the cache whose options are checked instead of those of `config`; it is not
/// used for reading.
std::vector<CheckedSplit> check_splits(RunConfig& config, const Configured<Cache>& cache,
                                       const std::function<void(const std::string&)>& warn);

}  // namespace dtrain
