// Options for converting the texts of a table column to numbers, if they are neither plain numbers nor
// categories.
#pragma once

#include <optional>
#include <vector>

#include "base/json.h"
#include "config/codec.h"

namespace dtrain {

/// A number extracted from a date.
enum class DatePart { year, month, day, weekday, hour, minute, days, day_of_year };
template <>
inline const EnumNames<DatePart> names_of<DatePart> = {
    {DatePart::year, "year"}, {DatePart::month, "month"},
    {DatePart::day, "day"},   {DatePart::weekday, "weekday"},
    {DatePart::hour, "hour"}, {DatePart::minute, "minute"},
    {DatePart::days, "days"}, {DatePart::day_of_year, "day_of_year"}};

/// Meaning of plain numbers in a date column, for example seconds since 1970. `none`: plain numbers are not
/// dates.
enum class DateNumbers { seconds, milliseconds, yyyymmdd, year, none };
template <>
inline const EnumNames<DateNumbers> names_of<DateNumbers> = {{DateNumbers::seconds, "seconds"},
                                                             {DateNumbers::milliseconds, "milliseconds"},
                                                             {DateNumbers::yyyymmdd, "yyyymmdd"},
                                                             {DateNumbers::year, "year"},
                                                             {DateNumbers::none, "none"}};

/// Properties of a date format that cannot be determined from a single date. Example: 02/01/2026 is January 2
/// or February 1.
struct DateForm {
  bool day_first = false;  // true if 02/01/2026 is January 2
  DateNumbers numbers = DateNumbers::seconds;
  bool operator==(const DateForm&) const = default;
};

/// Options for reading one table column. They are stored in the facts of the training file for each column
/// that is not read in the default way.
struct ColumnReading {
  // Whether the texts are numbers with a currency, a percent sign or thousands separators.
  bool amount = false;
  std::vector<DatePart> dates;   // features made from a date column; empty for other columns
  std::optional<DateForm> form;  // format of the dates; if not set, it is determined from the file
  /// Whether the column is followed by a 0/1 feature that marks missing values. If not set, this feature is
  /// added only if the file has missing values.
  std::optional<bool> indicator = false;

  bool operator==(const ColumnReading&) const = default;
  Json to_json() const;
  /// Throws UserError if a part of the JSON value is malformed.
  static ColumnReading from_json(const Json& json);
};

}  // namespace dtrain
