// The lines of metrics.jsonl in memory, for the trainer and checkpoints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace dtrain {

/// The records of a run: one JSON object per epoch, one line each. The records are stored as the text of
/// metrics.jsonl, to which each epoch appends a line. Therefore a save only copies this text, and does not
/// serialize the records of all past epochs again.
class History {
 public:
  History() = default;
  /// Receives a record that contains only epoch, step and tables.
  using TakeTables = std::function<void(Json tables)>;
  /// Parses the text of a metrics.jsonl. Earlier versions of dtrain also wrote metrics that are tables to
  /// this file. Such tables are removed from the lines, and `take` is called with the tables of each epoch.
  /// Throws UserError unless every line is a record, which is an object with non-negative integers "epoch"
  /// and "step".
  static History parse(std::string_view lines, const TakeTables& take = nullptr);

  /// Appends a record, which must have no tables. Throws UserError like parse().
  void push(const Json& record);

  const std::string& text() const { return text_; }
  /// The last record's line, including the newline; empty if there is no record.
  std::string_view last_line() const { return std::string_view(text_).substr(last_line_); }
  /// The last record; null if there is none.
  const Json& last() const { return last_; }

 private:
  std::string text_;
  size_t last_line_ = 0;  // offset of the last line
  Json last_;
};

}  // namespace dtrain
