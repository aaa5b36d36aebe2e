// The conversion of a table column's texts to numbers, if they are not plain numbers or categories.
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

/// Unit of dates written as plain numbers; none: plain numbers are not dates.
enum class DateNumbers { seconds, milliseconds, yyyymmdd, year, none };
template <>
inline const EnumNames<DateNumbers> names_of<DateNumbers> = {{DateNumbers::seconds, "seconds"},
                                                             {DateNumbers::milliseconds, "milliseconds"},
                                                             {DateNumbers::yyyymmdd, "yyyymmdd"},
                                                             {DateNumbers::year, "year"},
                                                             {DateNumbers::none, "none"}};

/// Properties of the format of a column's dates that a single text cannot determine.
struct DateForm {
  bool day_first = false;  // 02/01/2026 is January 2
  DateNumbers numbers = DateNumbers::seconds;
  bool operator==(const DateForm&) const = default;
};

/// Options for reading one column. The facts of the training file contain them for each column that is not
/// read the default way.
struct ColumnReading {
  bool amount = false;           // numbers with a currency, a percent sign or thousands separators
  std::vector<DatePart> dates;   // features made from a date column; empty for other columns
  std::optional<DateForm> form;  // unset if the file must determine it
  /// Whether a 0/1 feature that marks missing values follows. Unset: only if the file has missing values.
  std::optional<bool> indicator = false;

  bool operator==(const ColumnReading&) const = default;
  Json to_json() const;
  /// Throws UserError if a part is malformed.
  static ColumnReading from_json(const Json& json);
};

}  // namespace dtrain
