// Options of `windows:`, which turns the rows of a table into overlapping windows of time series.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "config/schema.h"

namespace dtrain {

/// Options for windows. A sample has `length` consecutive rows of one series as inputs, and the targets of
/// the next `horizon` rows.
struct WindowsOptions {
  int64_t length = 0, horizon = 1;
  int64_t stride = 1;                   // rows from one window of a series to the next
  std::optional<std::string> by, time;  // names of the columns, files or datasets of series and times
  /// Whether past values of the targets are inputs, too. Unset means true for csv; always unset for arrays.
  std::optional<bool> past_targets;
  Mark mark = {}, by_mark = {}, time_mark = {};  // locations in the configuration

  static const Schema<WindowsOptions>& schema();

  bool has_past_targets() const { return past_targets.value_or(true); }
  /// Returns the number of columns that readers add for series and times.
  size_t key_columns() const { return (by ? 1u : 0u) + (time ? 1u : 0u); }
  /// Returns a text that is the same for options that read the same columns.
  std::string columns_read() const;
};

/// Returns why an input or target of the model cannot be made of windows; "" if it can.
std::string why_no_windows_fit(const WindowsOptions& windows, const TensorSpec& wanted, bool target);

/// Returns the types and shapes that these inputs (or targets) of the model need from each row of the source.
/// Without windows, these are `wanted` itself. With windows, an input [length, ...] takes rows of [...], and
/// a target [horizon, ...] takes rows of [...]; a target with a horizon of 1 may lack the first axis. Throws
/// UserError with the location of `windows` for another shape.
std::vector<TensorSpec> rows_of_windows(const std::optional<WindowsOptions>& windows,
                                        std::vector<TensorSpec> wanted, bool targets);

}  // namespace dtrain
