// Dates and times in tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/columns/column_reading.h"

namespace dtrain {

/// A date in its own time zone. Parts that the text lacks are 0; a month of a year without a day gets day 1.
struct CsvDate {
  int year = 0, month = 0, day = 0;
  int hour = 0, minute = 0;
  double second = 0;
  int offset = 0;  // minutes by which local time is ahead of UTC
};

/// Reads `2026-01-31`, `2026-01-31T12:00:00.5+01:00`, `31.01.2026`, `01/31/2026` and `31/01/2026`
/// (form.day_first decides), `Jan 31 2026`, `31 January 2026`, `January 2026`, `January`, and, depending on
/// form.numbers, `20260131`, `2026` or a Unix time. A time may follow a day. Returns nullopt if the text is
/// not a date of the calendar.
std::optional<CsvDate> read_date(std::string_view text, const DateForm& form);

/// Returns why read_date() rejects the text, if a part of the text explains it: "February has no day 31", day
/// and month in the other order, or a number among dates. Otherwise returns "".
std::string why_no_date(std::string_view text, const DateForm& form);

/// Returns true for a complete date, with or without a time, in any of these formats except plain numbers.
bool is_csv_date(std::string_view text);

/// Returns a part as a number. Weekdays count from 0 (Monday), days from 1970-01-01 in UTC with the time of
/// day as a fraction. Returns nullopt if the date does not have the part.
std::optional<double> part_of_date(const CsvDate& date, DatePart part);

/// Infers how a column writes its dates from all of its texts, in any order. Plain numbers among other dates
/// are dates if all of them are 20260131 or 2026; a Unix time is not expected there.
class DateFormFinder {
 public:
  void add(std::string_view text);
  void merge(const DateFormFinder& other);
  /// Returns the form. `day_first` decides the order of day and month if no text does.
  DateForm form(bool day_first) const;

 private:
  bool first_is_day_ = false, second_is_day_ = false;  // a number above 12 was found in this position
  bool some_numbers_ = false, all_years_ = true, all_yyyymmdd_ = true, some_milliseconds_ = false;
  bool some_dates_ = false;  // some dates are not plain numbers
};

}  // namespace dtrain
