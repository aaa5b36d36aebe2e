// The pass over a table that reads its values.
#pragma once

#include <map>
#include <vector>

#include "data/readers/csv/destination.h"
#include "data/readers/csv/refusal.h"

namespace dtrain {

/// Thrown if a field that was taken for numbers contains text, and so may be a field of categories.
struct CsvTextAmongNumbers {
  size_t field = 0;
};

/// Reads rows and writes their values to their destinations. Any thread may fill a block.
class CsvFiller {
 public:
  /// Keeps the references that `refusal` holds. `destinations` are indexed by field. `doubtful` are fields
  /// that count as numbers until text is found in them.
  CsvFiller(const CsvRejection& refusal, const std::multimap<size_t, CsvDestination>& destinations,
            const std::map<size_t, CsvCategory>& doubtful);
  /// Reads the rows of a block. Returns the digits that each field's numbers lose as float32. Throws
  /// UserError for a row of another width and for a value that is not valid in its column, Error if the file
  /// does not have the block's rows any more, and CsvTextAmongNumbers.
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
