// Dates and times in tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/columns/column_reading.h"

namespace dtrain {

/// A date in its own time zone. Parts that are missing in the text are 0, except that a missing day is 1 if
/// the text has a year and a month.
struct CsvDate {
  int year = 0, month = 0, day = 0;
  int hour = 0, minute = 0;
  double second = 0;
  int offset = 0;  // minutes by which local time is ahead of UTC
};

/// Reads `2026-01-31`, `2026-01-31T12:00:00.5+01:00`, `31.01.2026`, `01/31/2026` and `31/01/2026`
/// (form.day_first decides), `Jan 31 2026`, `31 January 2026`, `January 2026`, `January`, and, depending on
/// form.numbers, `20260131`, `2026` or a Unix time. A time may follow the day. Returns nullopt if the text is
/// not a date, or if the date does not exist in the calendar.
std::optional<CsvDate> read_date(std::string_view text, const DateForm& form);

/// Returns the reason why read_date() rejects the text, if it is one of these: the month does not have
/// this day ("February has no day 31"), day and month are in the wrong order, or the text is a number but
/// the other texts of the column are dates. Otherwise returns "".
std::string why_no_date(std::string_view text, const DateForm& form);

/// Returns true if the text is a complete date, with or without a time, in one of the formats of read_date().
/// Plain numbers do not count as dates.
bool is_csv_date(std::string_view text);

/// Returns a part of a date as a number, or nullopt if the date does not have the part. Weekdays are counted
/// from 0 (Monday). `days` is the number of days since 1970-01-01 in UTC, with the time of day as a fraction.
std::optional<double> part_of_date(const CsvDate& date, DatePart part);

/// Infers the format of the dates of a column from all texts of the column, which may be added in any order.
/// If the column has both plain numbers and other dates, the numbers count as dates only in two cases: all
/// numbers have the form 20260131, or all have the form 2026. In such a column, a number cannot be a Unix
/// time.
class DateFormFinder {
 public:
  void add(std::string_view text);
  void merge(const DateFormFinder& other);
  /// Returns the format. If no text determines the order of day and month, `day_first` determines it.
  DateForm form(bool day_first) const;

 private:
  bool first_is_day_ = false, second_is_day_ = false;  // a number above 12 was found in this position
  bool some_numbers_ = false, all_years_ = true, all_yyyymmdd_ = true, some_milliseconds_ = false;
  bool some_dates_ = false;  // true if a text is a date that is not a plain number
};

}  // namespace dtrain
