// The pass over a table that comes before its values are read: it finds what the meaning of a value depends
// on.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/readers/csv_dates.h"
#include "data/readers/csv_text.h"
#include "data/readers/csv_values.h"

namespace dtrain {

/// What is to be found out. Fields are counted from 0.
struct CsvQuestions {
  std::set<size_t> texts;    // fields whose different texts are wanted
  std::set<size_t> dates;    // fields whose form of dates is wanted
  std::set<size_t> gaps;     // fields of which it is wanted whether they miss values
  std::optional<size_t> id;  // the field whose longest text is wanted
  /// Fields without whose values a row is left out, and whether these are names rather than numbers.
  std::map<size_t, bool> required;

  bool empty() const { return texts.empty() && dates.empty() && gaps.empty() && !id && required.empty(); }
};

struct CsvAnswers {
  /// By field, without those that say that there is no value; sorted, by number where all are numbers.
  std::map<size_t, std::vector<std::string>> texts;
  std::map<size_t, DateFormFinder> dates;
  std::set<size_t> gaps;  // of the fields in question, those that miss values
  size_t longest_id = 1;  // bytes
};

/// Reads all rows, of `width` fields, by several threads. Sets the blocks' rows that are left out, which do
/// not count for the answers, and numbers the other rows.
CsvAnswers survey_csv(const CsvText& text, const CsvValues& values, size_t width,
                      const CsvQuestions& questions, std::vector<CsvBlock>& blocks);

}  // namespace dtrain
