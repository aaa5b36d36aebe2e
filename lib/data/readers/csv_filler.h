// The pass over a table in which its values are read.
#pragma once

#include <map>
#include <vector>

#include "data/readers/csv_destination.h"
#include "data/readers/csv_refusal.h"

namespace dtrain {

/// Thrown where a field that was taken for numbers has something else, which may make it one of texts.
struct CsvTextAmongNumbers {
  size_t field = 0;
};

/// Reads rows and writes their values to where they belong. Any thread may fill a block.
class CsvFiller {
 public:
  /// Refers to what `refusal` refers to. `destinations`: by field. `doubtful`: fields that are taken for
  /// numbers so far.
  CsvFiller(const CsvRefusal& refusal, const std::multimap<size_t, CsvDestination>& destinations,
            const std::map<size_t, CsvCategory>& doubtful);
  /// Returns what each field's numbers lose as float32. Throws UserError for a row of another width and for a
  /// value that its column does not take, Error where the file has other rows than the block says, and
  /// CsvTextAmongNumbers.
  std::map<size_t, DigitLoss> fill(const CsvBlock& block) const;

 private:
  /// Where the values of one field go.
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

  const CsvRefusal refusal_;
  const CsvText& text_;
  const CsvValues& values_;
  const std::multimap<size_t, CsvDestination>& destinations_;
  const std::map<size_t, CsvCategory>& doubtful_;
};

}  // namespace dtrain
