#include "data/readers/csv/dates.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "data/readers/csv/values.h"

namespace dtrain {

namespace {

constexpr double kDaySeconds = 86400;

/// Reads a text from its beginning, part by part, and removes each part that was read.
class DateScanner {
 public:
  explicit DateScanner(std::string_view text) : rest_(text) {}

  bool is_done() const { return rest_.empty(); }
  char front() const { return rest_.empty() ? '\0' : rest_.front(); }
  /// Returns the number of digits at the beginning of the text.
  size_t digits() const {
    return static_cast<size_t>(std::find_if_not(rest_.begin(), rest_.end(), is_ascii_digit) - rest_.begin());
  }
  char behind(size_t count) const { return count < rest_.size() ? rest_[count] : '\0'; }
  bool take(char c) {
    if (front() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool skip_any(std::string_view of) {
    const size_t count = std::min(rest_.find_first_not_of(of), rest_.size());
    rest_.remove_prefix(count);
    return count > 0;
  }
  /// Reads a number if the text begins with at least `least` and at most `most` digits. Otherwise returns
  /// false.
  bool take_number(size_t least, size_t most, int& out) {
    const size_t count = digits();
    if (count < least || count > most) return false;
    std::from_chars(rest_.data(), rest_.data() + count, out);
    rest_.remove_prefix(count);
    return true;
  }
  /// Reads letters and returns them in lower case.
  std::string take_word() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_ascii_letter);
    const auto count = static_cast<size_t>(end - rest_.begin());
    std::string word = in_small_letters(std::string(rest_.substr(0, count)));
    rest_.remove_prefix(count);
    return word;
  }
  double take_fraction() {
    double value = 0, place = 0.1;
    for (; is_ascii_digit(front()); rest_.remove_prefix(1), place /= 10) value += place * (front() - '0');
    return value;
  }

 private:
  std::string_view rest_;
};

constexpr std::array<std::string_view, 12> kMonths{"january",   "february", "march",    "april",
                                                   "may",       "june",     "july",     "august",
                                                   "september", "october",  "november", "december"};
constexpr std::array<std::string_view, 7> kWeekdays{"monday", "tuesday",  "wednesday", "thursday",
                                                    "friday", "saturday", "sunday"};

/// Returns the index of the name that equals `word`. If `word` has three or four letters, it may also be the
/// beginning of a name. Returns -1 if no name matches.
template <size_t kCount>
int place_of_name(const std::array<std::string_view, kCount>& names, const std::string& word) {
  if (word.size() < 3) return -1;
  const auto found =
      std::find_if(names.begin(), names.end(), [&](std::string_view name) { return name.starts_with(word); });
  if (found == names.end() || (word.size() > 4 && word.size() < found->size())) return -1;
  return static_cast<int>(found - names.begin());
}

/// Completes a year of two digits as POSIX does: 69 to 99 mean 1969 to 1999, and 00 to 68 mean 2000 to 2068.
int whole_year(int two_digits) {
  return two_digits + (two_digits < 69 ? 2000 : 1900);
}

bool is_in_calendar(const CsvDate& date) {
  using namespace std::chrono;
  if (date.month < 1 || date.month > 12) return false;
  if (date.day == 0) return date.year == 0;
  const year in(date.year == 0 ? 2000 : date.year);  // assumes a leap year if there is no year
  return date.year >= 0 && date.year <= 9999 &&
         year_month_day(in, month(static_cast<unsigned>(date.month)), day(static_cast<unsigned>(date.day)))
             .ok();
}

bool is_whole_day(const CsvDate& date) {
  return date.year > 0 && date.day > 0 && is_in_calendar(date);
}

/// Returns a text such as "February has no day 31" if the day of the date does not exist in its month;
/// otherwise returns "".
std::string missing_day(const std::optional<CsvDate>& date) {
  if (!date || date->month < 1 || date->month > 12 || date->day <= 28 || is_in_calendar(*date)) return "";
  std::string name(kMonths[static_cast<size_t>(date->month - 1)]);
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  const bool is_leap_day = date->month == 2 && date->day == 29;
  return fmt::format("{}{} has no day {}", name, is_leap_day ? fmt::format(" {}", date->year) : "",
                     date->day);
}

/// Reads an offset from UTC: `Z`, `UTC`, `+01:00`, `-0530`, `+01`.
bool read_offset(DateScanner& text, CsvDate& date) {
  if (text.is_done()) return true;
  const bool ahead = text.front() == '+';
  if (!text.take('+') && !text.take('-')) {
    const std::string word = text.take_word();
    return (word == "z" || word == "utc" || word == "gmt") && text.is_done();
  }
  int hours = 0, minutes = 0;
  if (text.digits() == 4) {
    text.take_number(4, 4, minutes);
    hours = minutes / 100;
    minutes %= 100;
  } else if (!text.take_number(2, 2, hours) || (text.take(':') && !text.take_number(2, 2, minutes))) {
    return false;
  }
  date.offset = (ahead ? 1 : -1) * (60 * hours + minutes);
  return hours <= 23 && minutes <= 59 && text.is_done();
}

/// Reads a time up to the end of the text: 12:00, 12:00:00.5, 3:45 PM, optionally with an offset from UTC.
bool read_time(DateScanner& text, CsvDate& date) {
  int second = 0;
  if (!text.take_number(1, 2, date.hour) || !text.take(':') || !text.take_number(2, 2, date.minute))
    return false;
  if (text.take(':')) {
    if (!text.take_number(2, 2, second)) return false;
    date.second = second;
    if (text.take('.') || text.take(',')) date.second += text.take_fraction();
  }
  text.skip_any(" ");
  if (const char c = text.front(); c == 'A' || c == 'a' || c == 'P' || c == 'p') {
    const std::string half = text.take_word();
    if ((half != "am" && half != "pm") || date.hour < 1 || date.hour > 12) return false;
    date.hour = date.hour % 12 + (half == "pm" ? 12 : 0);
    text.skip_any(" ");
  }
  return date.hour <= 23 && date.minute <= 59 && second <= 60 && read_offset(text, date);
}

/// Reads the rest of a text after the day, which must be empty or a time.
bool read_rest(DateScanner& text, CsvDate& date) {
  if (text.is_done()) return true;
  if (!text.take('T') && !text.take('t') && !text.skip_any(" ,")) return false;
  text.skip_any(" ");
  return read_time(text, date);
}

/// Reads a date that consists of three groups of digits, or of a year and a month. Does not check the date
/// against the calendar.
std::optional<CsvDate> read_digits(DateScanner text, const DateForm& form) {
  CsvDate date;
  int first = 0, second = 0;
  if (text.digits() == 4) {
    text.take_number(4, 4, date.year);
    const char separator = text.front();
    if ((separator != '-' && separator != '/' && separator != '.') || !text.take(separator) ||
        !text.take_number(1, 2, date.month))
      return std::nullopt;
    date.day = 1;
    if (text.take(separator) ? !text.take_number(1, 2, date.day) || !read_rest(text, date) : !text.is_done())
      return std::nullopt;
    return date;
  }
  if (!text.take_number(1, 2, first)) return std::nullopt;
  const char separator = text.front();
  if ((separator != '-' && separator != '/' && separator != '.') || !text.take(separator) ||
      !text.take_number(1, 2, second) || !text.take(separator))
    return std::nullopt;
  const bool is_short = text.digits() == 2;
  if (!text.take_number(is_short ? 2 : 4, is_short ? 2 : 4, date.year) || !read_rest(text, date))
    return std::nullopt;
  if (is_short) date.year = whole_year(date.year);
  const bool day_first = separator == '.' || form.day_first;
  date.day = day_first ? first : second;
  date.month = day_first ? second : first;
  return date;
}

/// Reads the day or the year of a date with words. A day may have a suffix, as in 1st.
bool read_day_or_year(DateScanner& text, CsvDate& date) {
  const size_t count = text.digits();
  int number = 0;
  if (!text.take_number(1, 4, number) || count == 3) return false;
  if (count == 4 || date.day != 0) {
    if (date.year != 0 || (count != 4 && count != 2)) return false;
    date.year = count == 4 ? number : whole_year(number);
    return date.year > 0;
  }
  date.day = number;
  if (is_ascii_letter(text.front())) {
    const std::string ending = text.take_word();
    if (ending != "st" && ending != "nd" && ending != "rd" && ending != "th") return false;
  }
  return number > 0;
}

/// Reads dates with names of months: "Jan 1 2000", "Sat, 1 January 2000 12:00", "January 2000", "January".
/// Does not check the date against the calendar.
std::optional<CsvDate> read_words(DateScanner text) {
  CsvDate date;
  for (text.skip_any(" "); !text.is_done(); text.skip_any(" ,-/.")) {
    if (is_ascii_letter(text.front())) {
      const std::string word = text.take_word();
      const int month = place_of_name(kMonths, word);
      if (month < 0 ? place_of_name(kWeekdays, word) < 0 : date.month != 0) return std::nullopt;
      if (month >= 0) date.month = month + 1;
    } else if (date.day != 0 && text.behind(text.digits()) == ':') {
      if (!read_time(text, date)) return std::nullopt;
    } else if (!read_day_or_year(text, date)) {
      return std::nullopt;
    }
  }
  if (date.day == 0 && date.year != 0) date.day = 1;
  return date;
}

std::optional<CsvDate> date_of_seconds(double seconds) {
  using namespace std::chrono;
  const double whole = std::floor(seconds / kDaySeconds);
  if (!(std::abs(whole) <= 2932896)) return std::nullopt;  // days from 1970-01-01 to 9999-12-31
  const year_month_day on{sys_days(days(static_cast<int>(whole)))};
  CsvDate date{static_cast<int>(on.year()), static_cast<int>(static_cast<unsigned>(on.month())),
               static_cast<int>(static_cast<unsigned>(on.day()))};
  const double of_day = seconds - whole * kDaySeconds;
  date.hour = std::min(static_cast<int>(of_day / 3600), 23);
  date.minute = std::min(static_cast<int>((of_day - date.hour * 3600) / 60), 59);
  date.second = of_day - date.hour * 3600 - date.minute * 60;
  return date.year > 0 ? std::optional(date) : std::nullopt;
}

/// Reads a date such as 20260131, or a year such as 2026. A year means January 1 of this year.
std::optional<CsvDate> read_compact(std::string_view text, size_t digits) {
  int number = 0;
  if (text.size() != digits || !DateScanner(text).take_number(digits, digits, number)) return std::nullopt;
  const CsvDate date =
      digits == 4 ? CsvDate{number, 1, 1} : CsvDate{number / 10000, number / 100 % 100, number % 100};
  return date.year >= 1000 && date.day > 0 && is_in_calendar(date) ? std::optional(date) : std::nullopt;
}

std::optional<CsvDate> read_number(std::string_view text, double number, DateNumbers unit) {
  switch (unit) {
    case DateNumbers::year:
      return read_compact(text, 4);
    case DateNumbers::yyyymmdd:
      return read_compact(text, 8);
    case DateNumbers::milliseconds:
      return date_of_seconds(number / 1000);
    case DateNumbers::none:
      return std::nullopt;
    default:
      return date_of_seconds(number);
  }
}

/// Returns the first two numbers of a date such as 01/31/2026, in which either the day or the month may come
/// first. Returns nullopt for any other text.
std::optional<std::pair<int, int>> numbers_in_doubt(std::string_view text) {
  DateScanner scanner(text);
  int first = 0, second = 0;
  if (!scanner.take_number(1, 2, first)) return std::nullopt;
  const char separator = scanner.front();
  if (separator != '/' && separator != '-') return std::nullopt;
  if (!scanner.take(separator) || !scanner.take_number(1, 2, second) || !scanner.take(separator))
    return std::nullopt;
  return std::pair(first, second);
}

}  // namespace

std::optional<CsvDate> read_date(std::string_view text, const DateForm& form) {
  if (const auto number = csv_number(text)) return read_number(text, *number, form.numbers);
  if (auto date = read_digits(DateScanner(text), form); date && is_whole_day(*date)) return date;
  const auto date = read_words(DateScanner(text));
  return date && is_in_calendar(*date) ? date : std::nullopt;
}

std::string why_no_date(std::string_view text, const DateForm& form) {
  if (csv_number(text))
    return form.numbers == DateNumbers::none ? "other rows of the column have dates, not plain numbers" : "";
  if (std::string why = missing_day(read_digits(DateScanner(text), form)); !why.empty()) return why;
  if (std::string why = missing_day(read_words(DateScanner(text))); !why.empty()) return why;
  DateForm other = form;
  other.day_first = !form.day_first;
  if (!read_date(text, other)) return "";
  return form.day_first ? "the column is read as day/month/year, as in the training file, but this date is "
                          "month/day/year"
                        : "the column is read as month/day/year, as in the training file or because "
                          "'dayfirst: true' is not set, but this date is day/month/year";
}

bool is_csv_date(std::string_view text) {
  if (csv_number(text)) return false;
  for (const bool day_first : {false, true})
    if (const auto date = read_date(text, {.day_first = day_first})) return date->year > 0 && date->day > 0;
  return false;
}

std::optional<double> part_of_date(const CsvDate& date, DatePart part) {
  using namespace std::chrono;
  const auto known = [](int value) { return value > 0 ? std::optional<double>(value) : std::nullopt; };
  if (part == DatePart::year) return known(date.year);
  if (part == DatePart::month) return known(date.month);
  if (part == DatePart::day) return known(date.day);
  if (date.day == 0) return std::nullopt;
  if (part == DatePart::hour) return date.hour;
  if (part == DatePart::minute) return date.minute;
  if (date.year == 0) return std::nullopt;
  const sys_days at = year(date.year) / date.month / date.day;
  if (part == DatePart::weekday) return weekday(at).iso_encoding() - 1;
  if (part == DatePart::day_of_year) return (at - sys_days(year(date.year) / 1 / 1)).count() + 1;
  const double seconds = 3600.0 * date.hour + 60.0 * (date.minute - date.offset) + date.second;
  return static_cast<double>(at.time_since_epoch().count()) + seconds / kDaySeconds;
}

void DateFormFinder::add(std::string_view text) {
  if (const auto number = csv_number(text)) {
    some_numbers_ = true;
    all_years_ = all_years_ && read_compact(text, 4);
    all_yyyymmdd_ = all_yyyymmdd_ && read_compact(text, 8);
    // Numbers of at least 1e11 are milliseconds. As seconds, they would be dates in the year 5138 or later.
    some_milliseconds_ = some_milliseconds_ || std::abs(*number) >= 1e11;
    return;
  }
  some_dates_ = some_dates_ || is_csv_date(text);
  if (const auto numbers = numbers_in_doubt(text)) {
    first_is_day_ = first_is_day_ || numbers->first > 12;
    second_is_day_ = second_is_day_ || numbers->second > 12;
  }
}

void DateFormFinder::merge(const DateFormFinder& other) {
  first_is_day_ = first_is_day_ || other.first_is_day_;
  second_is_day_ = second_is_day_ || other.second_is_day_;
  some_numbers_ = some_numbers_ || other.some_numbers_;
  all_years_ = all_years_ && other.all_years_;
  all_yyyymmdd_ = all_yyyymmdd_ && other.all_yyyymmdd_;
  some_milliseconds_ = some_milliseconds_ || other.some_milliseconds_;
  some_dates_ = some_dates_ || other.some_dates_;
}

DateForm DateFormFinder::form(bool day_first) const {
  DateForm form;
  form.day_first = first_is_day_ != second_is_day_ ? first_is_day_ : day_first;
  if (some_numbers_)
    form.numbers = all_yyyymmdd_        ? DateNumbers::yyyymmdd
                   : all_years_         ? DateNumbers::year
                   : some_dates_        ? DateNumbers::none
                   : some_milliseconds_ ? DateNumbers::milliseconds
                                        : DateNumbers::seconds;
  return form;
}

}  // namespace dtrain
