// Messages about rows and values that cannot be read.
#pragma once

#include <string>
#include <string_view>

#include "data/readers/csv_destination.h"
#include "data/readers/csv_plan.h"
#include "data/readers/csv_text.h"

namespace dtrain {

/// Says where, what was expected and found, and which option would help. Refers to its parts.
struct CsvRefusal {
  const CsvText& text;
  const CsvValues& values;
  const CsvStart& start;
  const CsvPlan& plan;

  /// Throws UserError for the row at `line`, which has another number of values than the first one.
  [[noreturn]] void refuse_width(const char* line) const;
  /// Throws UserError for the value of field `index`, which `to` does not take.
  [[noreturn]] void refuse_value(const char* line, const CsvField& field, size_t index,
                                 const CsvDestination& to) const;

 private:
  /// Begins with a semicolon; "" where there is none.
  std::string advice(const char* line, std::string_view found, size_t index, const CsvDestination& to) const;
  std::string advice_for_text(std::string_view found, size_t index) const;
};

/// In a message.
inline constexpr size_t kMostCsvNames = 20;

}  // namespace dtrain
