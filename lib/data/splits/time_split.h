// Splits of time series. Each split takes a part of every series. The parts follow each other in time.
#pragma once

#include <string>

#include "data/dataset_spec.h"
#include "data/splits/split_dataset.h"
#include "data/windows/windows.h"

namespace dtrain {

struct TimeSplit {
  TimeParts parts;
  // Description of how the series are divided, for messages; "" if they are not divided.
  std::string words = {};
};

/// Returns the part of every series that `split` takes. A split takes a part only if it is drawn from another
/// split, or if other splits are drawn from it. Otherwise the result is empty. The parts follow each other in
/// the order train, validation, test.
TimeSplit time_split(const DatasetSpec& spec, const SplitSpec& split);

/// Returns the windows of `split` over the rows [source.from, source.to) of `held`. The last columns of
/// `held` must be the columns `by` and `time` that the option `windows` names. Sets `source.drawn` to the
/// description of how the split was drawn.
std::shared_ptr<const Windows> windows_of_split(const DatasetSpec& spec, const SplitSpec& split,
                                                const CachedColumns& held, DataSource& source, size_t inputs);

/// Returns windows over the rows of a file. If `are_labeled` is true, returns all windows; otherwise returns
/// only the last window of each series, for a forecast. Throws UserError if `held` does not contain the
/// series and time columns.
std::shared_ptr<const Windows> windows_of_file(const WindowsOptions& options, const CachedColumns& held,
                                               const std::string& path, size_t inputs, size_t targets,
                                               bool are_labeled);

}  // namespace dtrain
