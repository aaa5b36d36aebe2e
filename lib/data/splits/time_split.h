// Splits of time series: each takes a part of every series in the order of time.
#pragma once

#include <string>

#include "data/dataset_spec.h"
#include "data/splits/split_dataset.h"
#include "data/windows/windows.h"

namespace dtrain {

struct TimeSplit {
  TimeParts parts;
  std::string words = {};  // description of the division, for messages; "" if there is only one part
};

/// Returns the part of `split` if it is drawn from another split, or if other splits are drawn from it. The
/// parts follow each other in the order train, validation, test.
TimeSplit time_split(const DatasetSpec& spec, const SplitSpec& split);

/// Returns the windows of `split` over the rows [source.from, source.to) of `held`, whose last columns are
/// the series and times that its `windows` name. Sets `source.drawn`, the description of how the split was
/// drawn.
std::shared_ptr<const Windows> windows_of_split(const DatasetSpec& spec, const SplitSpec& split,
                                                const CachedColumns& held, DataSource& source, size_t inputs);

/// Returns one window for each series of `held`, or all windows if `are_labelled`. Throws UserError if `held`
/// lacks the columns of series and times.
std::shared_ptr<const Windows> windows_of_file(const WindowsOptions& options, const CachedColumns& held,
                                               const std::string& path, size_t inputs, size_t targets,
                                               bool are_labelled);

}  // namespace dtrain
