// The different texts of a table's columns: the pass over a file that comes before its values are numbers.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/readers/csv_text.h"

namespace dtrain {

struct CsvTexts {
  /// By field, without those that say that there is no value; sorted, by number where all are numbers.
  std::map<size_t, std::vector<std::string>> values;
  size_t longest = 1;  // bytes of the longest id
};

/// Reads all rows, of `width` fields, for the values of some fields and the length of the ids in another; by
/// several threads.
CsvTexts collect_csv_texts(const CsvText& text, const std::vector<CsvBlock>& blocks, size_t width,
                           const std::set<size_t>& fields, std::optional<size_t> id);

}  // namespace dtrain
