// The first pass over a table. It finds facts that must be known before the values can be read, such as the
// categories of a column.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/readers/csv/dates.h"
#include "data/readers/csv/text.h"
#include "data/readers/csv/values.h"
#include "data/text/token_counts.h"

namespace dtrain {

/// The facts to find in a file. Fields are counted from 0.
struct CsvQuestions {
  std::set<size_t> texts;                 // fields whose distinct texts are wanted
  std::set<size_t> dates;                 // fields whose date format is wanted
  std::set<size_t> gaps;                  // fields to check for missing values
  std::map<size_t, TokenOptions> tokens;  // fields of text whose words or pieces are counted
  std::set<size_t> lengths;               // fields whose longest text is wanted
  /// Fields that must have a value; a row without this value is left out. The bool is true if the field holds
  /// names, and false if it holds numbers.
  std::map<size_t, bool> required;

  bool empty() const {
    return texts.empty() && dates.empty() && gaps.empty() && tokens.empty() && lengths.empty() &&
           required.empty();
  }
};

struct CsvAnswers {
  /// Distinct texts of each field, without missing values, sorted (numerically if all texts are numbers).
  std::map<size_t, std::vector<std::string>> texts;
  std::map<size_t, DateFormFinder> dates;
  std::set<size_t> gaps;  // the checked fields that have missing values
  std::map<size_t, TokenCounts> tokens;
  std::map<size_t, size_t> longest;  // bytes of the longest text of each field in `lengths`, at least 1
};

/// Reads all rows on several threads. Each row has `width` fields. Stores in each block which of its rows are
/// left out, and numbers the remaining rows. The result describes only the remaining rows.
CsvAnswers survey_csv(const CsvText& text, const CsvValues& values, size_t width,
                      const CsvQuestions& questions, std::vector<CsvBlock>& blocks);

}  // namespace dtrain
