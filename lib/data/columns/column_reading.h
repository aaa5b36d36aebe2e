// How the texts of one column of a table become numbers, where plain numbers and categories do not say it.
#pragma once

#include <optional>
#include <vector>

#include "base/json.h"
#include "config/codec.h"

namespace dtrain {

/// A number that can be taken of a date.
enum class DatePart { year, month, day, weekday, hour, minute, days, day_of_year };
template <>
inline const EnumNames<DatePart> names_of<DatePart> = {
    {DatePart::year, "year"}, {DatePart::month, "month"},
    {DatePart::day, "day"},   {DatePart::weekday, "weekday"},
    {DatePart::hour, "hour"}, {DatePart::minute, "minute"},
    {DatePart::days, "days"}, {DatePart::day_of_year, "day_of_year"}};

/// The unit of dates that are written as plain numbers.
enum class DateNumbers { seconds, milliseconds, yyyymmdd, year };
template <>
inline const EnumNames<DateNumbers> names_of<DateNumbers> = {{DateNumbers::seconds, "seconds"},
                                                             {DateNumbers::milliseconds, "milliseconds"},
                                                             {DateNumbers::yyyymmdd, "yyyymmdd"},
                                                             {DateNumbers::year, "year"}};

/// How a column writes its dates, as far as one text alone does not tell.
struct DateForm {
  bool day_first = false;  // 02/01/2026 is January 2
  DateNumbers numbers = DateNumbers::seconds;
  bool operator==(const DateForm&) const = default;
};

/// The facts of the training file keep it for each column that is not read in the default way.
struct ColumnReading {
  bool amount = false;           // numbers with a currency, a percent sign or thousands separators
  std::vector<DatePart> dates;   // the features of a column of dates; empty: the column has none
  std::optional<DateForm> form;  // of the dates; unset: the file is still to be asked
  /// Whether a feature of 0 and 1 follows that marks missing values. Unset: if the file has missing values.
  std::optional<bool> indicator = false;

  bool operator==(const ColumnReading&) const = default;
  Json to_json() const;
  /// Throws UserError where a part is not what it must be.
  static ColumnReading from_json(const Json& json);
};

}  // namespace dtrain
