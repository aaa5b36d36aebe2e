// Options of `windows:`. Windows are overlapping samples of a time series, which are made from the rows of a
// table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "config/schema.h"

namespace dtrain {

/// Options for windows. The inputs of a sample are `length` consecutive rows of one series. Its targets are
/// the targets of the next `horizon` rows.
struct WindowsOptions {
  int64_t length = 0, horizon = 1;
  int64_t stride = 1;  // number of rows between the starts of two consecutive windows
  // Names of the columns, files or datasets that contain the series and the times.
  std::optional<std::string> by, time;
  /// Whether past values of the targets are also used as inputs. If not set, the default is true for csv. For
  /// arrays, this option must not be set.
  std::optional<bool> past_targets;
  Mark mark = {}, by_mark = {}, time_mark = {};  // locations in the configuration

  static const Schema<WindowsOptions>& schema();

  bool has_past_targets() const { return past_targets.value_or(true); }
  /// Returns the number of columns that readers append for the series and the times.
  size_t key_columns() const { return (by ? 1u : 0u) + (time ? 1u : 0u); }
  /// Returns a text that depends only on the options that determine which columns are read.
  std::string columns_read() const;
};

/// Returns the reason why the shape of an input or target of the model does not fit the windows, or "" if it
/// fits.
std::string why_no_windows_fit(const WindowsOptions& windows, const TensorSpec& wanted, bool target);

/// Returns the types and shapes that each row of the source must have for these inputs (or targets) of the
/// model. Without windows, they are the same as `wanted`. With windows, an input of shape [length, ...] needs
/// rows of shape [...], and a target of shape [horizon, ...] needs rows of shape [...]. If the horizon is 1,
/// the first axis of a target may be missing. Throws UserError with the location of `windows` for any other
/// shape.
std::vector<TensorSpec> rows_of_windows(const std::optional<WindowsOptions>& windows,
                                        std::vector<TensorSpec> wanted, bool targets);

}  // namespace dtrain
