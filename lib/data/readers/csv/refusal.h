// Error messages about rows and values that cannot be read.
#pragma once

#include <string>
#include <string_view>

#include "data/readers/csv/destination.h"
#include "data/readers/csv/plan.h"
#include "data/readers/csv/text.h"

namespace dtrain {

/// Reports errors in rows and values. A message contains the location, the expected and the found value, and
/// the option that would help. The object contains only references to other objects, which must outlive it.
struct CsvRejection {
  const CsvText& text;
  const CsvValues& values;
  const CsvStart& start;
  const CsvPlan& plan;

  /// Throws UserError for the row at `line`, which has more or fewer values than the first row.
  [[noreturn]] void reject_width(const char* line) const;
  /// Throws UserError for the value of field `index`, which cannot be stored in `to`.
  [[noreturn]] void reject_value(const char* line, const CsvField& field, size_t index,
                                 const CsvDestination& to) const;
  /// Returns true if the value `found` in the row at `line` is probably a column name in a header that was
  /// mistaken for a row.
  bool is_in_header(const char* line, std::string_view found) const;

 private:
  /// Returns advice for the user, which begins with a semicolon, or "" if no advice is known.
  std::string advice(const char* line, std::string_view found, size_t index, const CsvDestination& to) const;
  std::string advice_for_text(std::string_view found, size_t index) const;
};

/// Maximum number of names listed in a message.
inline constexpr size_t kMostCsvNames = 20;

}  // namespace dtrain
