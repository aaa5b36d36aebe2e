// Reads the values of a table, after the survey (survey.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/readers/csv/destination.h"
#include "data/readers/csv/refusal.h"

namespace dtrain {

/// Thrown if a text is found in a field that was read as numbers but may contain categories. read_csv() then
/// reads the field as categories.
struct CsvTextAmongNumbers {
  size_t field = 0;
};

/// Thrown by CsvFiller::fill() for a value that is not valid in its column. CsvFiller::find_wrong() finds
/// this value again, together with the wrong values of other columns.
struct CsvWrongValueFound {};

/// A value that is not valid in its column, or a row that is not valid.
struct CsvWrongValue {
  const char* at = nullptr;  // position in the file
  std::string message;       // begins with path, line and column; "" after the first kMostWrongValues
};
/// The maximum number of wrong values that are reported one by one.
constexpr size_t kMostWrongValues = 10;
/// Wrong values, indexed by field. The keys of wrong rows are larger than the index of any field.
using CsvWrongValues = std::map<size_t, CsvWrongValue>;

/// Reads rows and stores their values in the destinations. Any thread may fill a block.
class CsvFiller {
 public:
  /// `refusal` reports errors; the objects to which it refers must outlive this object. `destinations` is
  /// indexed by field. `doubtful` has the fields that are read as numbers until a text is found in them.
  CsvFiller(const CsvRejection& refusal, const std::multimap<size_t, CsvDestination>& destinations,
            const std::map<size_t, CsvCategory>& doubtful);
  /// Reads the rows of a block. Returns the precision that the numbers of each field would lose in float32.
  /// Throws UserError if a row has a different number of values, or if the file probably has a header that
  /// was read as a row. Throws CsvWrongValueFound if a value is not valid in its column. Throws Error if the
  /// number of rows in the block has changed, and CsvTextAmongNumbers if a field in `doubtful` contains a
  /// text.
  std::map<size_t, DigitLoss> fill(const CsvBlock& block) const;
  /// Reads the rows of a block again, after fill() has failed. Adds the first wrong value of each field and
  /// the first wrong row to `wrong`, unless `wrong` already has one from an earlier block. Ignores values in
  /// wrong rows. Call this function for all blocks in the order of the file.
  void find_wrong(const CsvBlock& block, CsvWrongValues& wrong) const;

 private:
  /// Destinations of one field.
  struct Field {
    std::vector<CsvDestination> to;
    bool takes_plain_numbers = false;
  };

  std::vector<Field> fields_for(std::map<size_t, DigitLoss>& losses) const;
  /// Calls visit(p, row) for each row of a block that is not left out. `visit` moves `p` to the end of the
  /// row. Throws Error if the number of rows in the block has changed.
  template <class Visit>
  void for_each_row(const CsvBlock& block, CsvFields& reader, Visit visit) const;
  /// Adds the first wrong values of the row at `p` to `wrong`, and moves `p` to the end of the row.
  void find_in_row(const char*& p, size_t row, const std::vector<Field>& fields, CsvFields& reader,
                   CsvWrongValues& wrong) const;
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
