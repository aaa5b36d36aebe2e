// metrics.csv: the records of metrics.jsonl as a table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/record/history.h"

namespace dtrain {

/// A row an epoch under a header of the records' keys, in the order in which they first occur; where a record
/// lacks a key, its cell is empty. Numbers read back to the same double (nan, inf and -inf stand as such).
/// Held as text, to which an epoch appends a row.
class MetricsTable {
 public:
  /// Takes in the lines that `history`, of which earlier calls took in the beginning, has got since then.
  void update(const History& history);
  /// The whole table.
  const std::string& text() const { return text_; }
  /// The rows that the last update() appended; nothing where it changed the header, and so every row.
  std::optional<std::string_view> appended() const;

 private:
  std::string row_of(const Json& record) const;
  bool add_columns(const Json& record);

  std::vector<std::string> columns_;
  std::string text_;
  size_t taken_ = 0;     // bytes of the history
  size_t appended_ = 0;  // where the rows of the last update() begin
  bool anew_ = false;    // the last update() changed the header
};

}  // namespace dtrain
