// Dates and times as tables write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/columns/column_reading.h"

namespace dtrain {

/// A date in its own time zone. What the text does not have is 0; a month without a day has its first day.
struct CsvDate {
  int year = 0, month = 0, day = 0;
  int hour = 0, minute = 0;
  double second = 0;
  int offset = 0;  // minutes ahead of UTC
};

/// Reads `2026-01-31`, `2026-01-31T12:00:00.5+01:00`, `31.01.2026`, `01/31/2026` and `31/01/2026` (as `form`
/// says), `Jan 31 2026`, `31 January 2026`, `January 2026`, `January`, and, as form.numbers says, `20260131`,
/// `2026` or a Unix time. A time may follow a day. Nothing where the text is no date of the calendar.
std::optional<CsvDate> read_date(std::string_view text, const DateForm& form);

/// Why read_date() takes no date from the text, where a part of the text tells: "February has no day 31", or
/// the other order of day and month. Else "".
std::string why_no_date(std::string_view text, const DateForm& form);

/// Whether a text is a whole day, perhaps with a time, in any of these ways but as a plain number.
bool is_csv_date(std::string_view text);

/// The part as a number: weekday from 0 (Monday); days since 1970-01-01 in UTC, with the time of day as a
/// fraction. Nothing where the date does not have it.
std::optional<double> part_of_date(const CsvDate& date, DatePart part);

/// Learns how a column writes its dates from all of its texts, whose order does not matter.
class DateFormFinder {
 public:
  void add(std::string_view text);
  void merge(const DateFormFinder& other);
  /// `day_first` decides where no text does.
  DateForm form(bool day_first) const;

 private:
  bool first_is_day_ = false, second_is_day_ = false;  // a number above 12 stands there
  bool some_numbers_ = false, all_years_ = true, all_yyyymmdd_ = true, some_milliseconds_ = false;
};

}  // namespace dtrain
