// metrics.csv: the records of metrics.jsonl as a table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/record/history.h"

namespace dtrain {

/// A table with one row per epoch. The header contains the keys of all records, in the order of their first
/// occurrence. A cell is empty if the record of its row lacks the key. Numbers parse back to the same double,
/// and non-finite numbers are written as nan, inf and -inf. The table is stored as text, to which each epoch
/// appends a row.
class MetricsTable {
 public:
  /// Adds the lines that were appended to `history` since the previous call.
  void update(const History& history);
  /// Returns the whole table.
  const std::string& text() const { return text_; }
  /// Returns the rows that the last update() appended. Returns nullopt if the last update() added columns,
  /// because all rows have then changed.
  std::optional<std::string_view> appended() const;

 private:
  std::string row_of(const Json& record) const;
  bool add_columns(const Json& record);

  std::vector<std::string> columns_;
  std::string text_;
  size_t taken_ = 0;             // bytes of the history read so far
  size_t appended_ = 0;          // offset of the rows that the last update() appended
  bool header_changed_ = false;  // whether the last update() changed the header
};

}  // namespace dtrain
