// The lines of metrics.jsonl as the trainer and checkpoints hold them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace dtrain {

/// One JSON object an epoch, a line each. They are held as the file's own text, to which an epoch appends a
/// line, so that saving a run costs a copy of it, not the time to write out every epoch that was ever done.
class History {
 public:
  History() = default;
  /// Is given a record of which only epoch, step and the tables are left.
  using TakeTables = std::function<void(Json tables)>;
  /// Takes the text of a metrics.jsonl. Earlier versions wrote metrics that are tables into it, too: these
  /// are removed from the lines and handed to `take`, an epoch at a time. Throws UserError unless every line
  /// is a record: an object with whole numbers from 0 up under "epoch" and "step".
  static History parse(std::string_view lines, const TakeTables& take = nullptr);

  /// Throws UserError as parse() does. The record has no tables.
  void push(const Json& record);

  const std::string& text() const { return text_; }
  /// The last record's line with its end; empty where there is no record.
  std::string_view last_line() const { return std::string_view(text_).substr(last_line_); }
  /// The last record; null where there is none.
  const Json& last() const { return last_; }

 private:
  std::string text_;
  size_t last_line_ = 0;  // where it begins
  Json last_;
};

}  // namespace dtrain
