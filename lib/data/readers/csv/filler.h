// Reads the values of a table, after the survey (survey.h).
#pragma once

#include <map>
#include <vector>

#include "data/readers/csv/destination.h"
#include "data/readers/csv/refusal.h"

namespace dtrain {

/// Thrown if a text is found in a field that was read as numbers but may contain categories. read_csv() then
/// reads the field as categories.
struct CsvTextAmongNumbers {
  size_t field = 0;
};

/// Reads rows and stores their values in the destinations. Any thread may fill a block.
class CsvFiller {
 public:
  /// `refusal` reports errors; the objects to which it refers must outlive this object. `destinations` is
  /// indexed by field. `doubtful` has the fields that are read as numbers until a text is found in them.
  CsvFiller(const CsvRejection& refusal, const std::multimap<size_t, CsvDestination>& destinations,
            const std::map<size_t, CsvCategory>& doubtful);
  /// Reads the rows of a block. Returns the precision that the numbers of each field would lose in float32.
  /// Throws UserError if a row has a different number of values, or if a value is not valid in its column.
  /// Throws Error if the number of rows in the block has changed, and CsvTextAmongNumbers if a field in
  /// `doubtful` contains a text.
  std::map<size_t, DigitLoss> fill(const CsvBlock& block) const;

 private:
  /// Destinations of one field.
  struct Field {
    std::vector<CsvDestination> to;
    bool takes_plain_numbers = false;
  };

  std::vector<Field> fields_for(std::map<size_t, DigitLoss>& losses) const;
  void fill_row(const char*& p, size_t row, const std::vector<Field>& fields, CsvFields& reader) const;
  const char* read_plain_number(const char* p, bool last, double& value) const;
  [[noreturn]] void refuse(const char* line, const CsvField& field, size_t index,
                           const CsvDestination& to) const;
  [[noreturn]] void fail_changed() const;

  const CsvRejection rejection_;
  const CsvText& text_;
  const CsvValues& values_;
  const std::multimap<size_t, CsvDestination>& destinations_;
  const std::map<size_t, CsvCategory>& doubtful_;
};

}  // namespace dtrain
