#include "profile/column_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/utf8.h"

namespace dtrain {

namespace {

double hash_of(std::string_view text) {
  constexpr int kBeyondDouble = 64 - std::numeric_limits<double>::digits;
  return static_cast<double>(uint64_t{TextHash()(text)} >> kBeyondDouble);
}

int64_t words_of(std::string_view text) {
  int64_t words = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != ' ' && (i == 0 || text[i - 1] == ' ')) ++words;
  return words;
}

/// Returns true if the name of a column suggests that it contains times. The values cannot show this, because
/// Unix times look like any other large numbers.
bool has_name_of_time(const std::string& name) {
  constexpr std::array<std::string_view, 9> kParts{"time",    "date",    "stamp",    "epoch", "unix",
                                                   "created", "updated", "modified", "when"};
  const std::string small = in_small_letters(name);
  return small == "ts" || small.ends_with("_ts") || small.ends_with("_at") ||
         std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return small.find(part) != std::string::npos; });
}

/// Returns true for texts that mark a missing value, but are recognized by the csv reader only if `na_values`
/// lists them. Infinity counts as missing, because the reader accepts only finite numbers.
bool is_name_of_missing(std::string_view text) {
  constexpr std::array<std::string_view, 20> kNames{
      "unknown", "missing", "not available", "not applicable", "undefined", "unspecified", "n.a.",
      "n.d.",    "nd",      "n/d",           "#n/a",           "#null!",    "--",          "---",
      ".",       "*",       "inf",           "-inf",           "infinity",  "-infinity"};
  constexpr size_t kLongest = 14;
  return text.size() <= kLongest &&
         std::find(kNames.begin(), kNames.end(), in_small_letters(std::string(text))) != kNames.end();
}

}  // namespace

void DateSpan::add(const CsvDate& date) {
  least_year = days == 0 ? date.year : std::min(least_year, date.year);
  most_year = std::max(most_year, date.year);
  least_month = days + months == 0 ? date.month : std::min(least_month, date.month);
  most_month = std::max(most_month, date.month);
  has_times = has_times || date.hour != 0 || date.minute != 0;
  ++(date.day > 0 && date.year > 0 ? days : months);
}

bool is_most(int64_t values, const ColumnProfile& column) {
  return 10 * values >= 9 * (column.numbers + column.texts);
}

bool is_comma_number(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos || comma == 0 || comma + 1 == text.size()) return false;
  const std::string_view whole = text.substr(0, comma), fraction = text.substr(comma + 1);
  if (!std::all_of(fraction.begin(), fraction.end(), is_digit)) return false;
  if (std::all_of(whole.begin(), whole.end(), is_digit)) return true;
  // The digits before the comma may be grouped by points, as in "1.234.567".
  for (size_t i = 0; i < whole.size(); ++i)
    if ((whole.size() - i) % 4 == 0 ? whole[i] != '.' : !is_digit(whole[i])) return false;
  return is_digit(whole.front());
}

void ColumnProfiler::add(std::string_view text, const char* at) {
  add_to_sample(add_value(text, at));
  ++rows_;
}

/// Adds the value to the statistics. Returns the number that represents it in the sample.
double ColumnProfiler::add_value(std::string_view text, const char* at) {
  double value = std::numeric_limits<double>::quiet_NaN();
  if (values_->is_missing_name(text)) {
    ++column_.missing;
    return value;
  }
  // A text such as "none" is a missing value if the column has numbers, but an ordinary value if it has
  // texts.
  if (values_->is_gap(text)) {
    ++missing_numbers_;
    value = hash_of(text);
    gaps_.insert(value);
  } else if (const auto number = number_of(text)) {
    add_number(*number, text);
    value = *number;
  } else {
    value = add_text(text, at);
  }
  constexpr size_t kMostHashes = 5'000'000;
  if (column_.distinct && hashes_.size() < kMostHashes) {
    column_.distinct = hashes_.insert(TextHash()(text)).second;
    if (!column_.distinct) hashes_ = std::unordered_set<size_t>();  // clear() would not free the memory
  }
  if (!column_.many_values) count(text);
  return value;
}

std::optional<double> ColumnProfiler::number_of(std::string_view text) const {
  return is_amount_ ? values_->amount(text) : values_->number(text);
}

void ColumnProfiler::add_number(double number, std::string_view text) {
  constexpr double kLeastDay = 19000101, kMostDay = 21001231, kYear1990 = 631152000, kYear2100 = 4102444800;
  constexpr double kMilliseconds = 1000;
  if (number >= kLeastDay && number <= kMostDay) {
    if (const auto date = read_date(text, {.numbers = DateNumbers::yyyymmdd})) compact_.add(*date);
  } else if (number >= kYear1990 && number <= kMilliseconds * kYear2100) {
    const bool is_seconds = number <= kYear2100;
    const DateForm form{.numbers = is_seconds ? DateNumbers::seconds : DateNumbers::milliseconds};
    if (is_seconds || number >= kMilliseconds * kYear1990)
      if (const auto date = read_date(text, form)) seconds_.add(*date);
  }
  const double start = column_.numbers == 0 ? number : column_.least;
  column_.counts_up = column_.counts_up && (start == 0 || start == 1) &&
                      number == start + static_cast<double>(column_.numbers);
  column_.least = column_.numbers == 0 ? number : std::min(column_.least, number);
  column_.most = column_.numbers == 0 ? number : std::max(column_.most, number);
  column_.whole = column_.whole && number == std::floor(number);
  column_.has_points = column_.has_points || text.find('.') != std::string_view::npos;
  ++column_.numbers;
  const double from_mean = number - column_.mean;
  column_.mean += from_mean / static_cast<double>(column_.numbers);
  squares_ += from_mean * (number - column_.mean);
}

double ColumnProfiler::add_text(std::string_view text, const char* at) {
  if (column_.texts++ == 0) text_ = {std::string(text), at};
  words_ += words_of(text);
  if (is_name_of_missing(text)) {
    ++named_missing_;
    std::vector<std::string>& names = column_.missing_names;
    if (std::find(names.begin(), names.end(), text) == names.end()) names.emplace_back(text);
  } else {
    if (other_text_.empty()) other_text_ = text;
    has_one_other_text_ = has_one_other_text_ && other_text_ == text;
    add_date_or_amount(text);
  }
  if (is_comma_number(text)) {
    if (column_.comma_numbers++ == 0) comma_ = {std::string(text), at};
    column_.has_comma_thousands = column_.has_comma_thousands || text.find('.') != std::string_view::npos;
  }
  return hash_of(text);
}

/// Counts the text if it is a date or an amount, and if all earlier texts were of the same kind.
void ColumnProfiler::add_date_or_amount(std::string_view text) {
  const int64_t before = column_.texts - named_missing_ - 1;
  if (column_.amounts == before && values_->amount(text)) ++column_.amounts;
  if (column_.dates.days + column_.dates.months < before) return;
  for (const bool day_first : {false, true})
    if (const auto date = read_date(text, {.day_first = day_first})) return column_.dates.add(*date);
}

/// Adds the value of one row to the sample. If the sample is full, removes every other element.
void ColumnProfiler::add_to_sample(double value) {
  std::vector<double>& sample = column_.sample;
  if (rows_ % stride_ != 0) return;
  sample.push_back(value);
  if (sample.size() < ColumnProfile::kMostSampled) return;
  for (size_t i = 0; 2 * i < sample.size(); ++i) sample[i] = sample[2 * i];
  sample.resize((sample.size() + 1) / 2);
  stride_ *= 2;
}

void ColumnProfiler::count(std::string_view text) {
  if (const auto known = counts_.find(text); known != counts_.end())
    ++known->second;
  else if (counts_.size() < ColumnProfile::kMostValues)
    counts_.emplace(text, 1);
  else
    column_.many_values = true;
}

ColumnProfile::Kind ColumnProfiler::kind() const {
  using Kind = ColumnProfile::Kind;
  const DateSpan& dates = column_.dates;
  if (column_.texts > 0) {
    const bool are_dates = dates.days == column_.texts || dates.months == column_.texts;
    return column_.numbers == 0 && are_dates ? Kind::date : Kind::text;
  }
  if (column_.numbers == 0) return Kind::empty;
  const bool are_times = seconds_.days == column_.numbers && has_name_of_time(column_.name);
  return compact_.days == column_.numbers || are_times ? Kind::date : Kind::number;
}

bool ColumnProfiler::has_marker() const {
  constexpr int64_t kRepeated = 5;
  return has_one_other_text_ && column_.texts - named_missing_ >= kRepeated &&
         is_most(column_.numbers, column_) && column_.amounts == 0 && column_.comma_numbers == 0;
}

ColumnProfile ColumnProfiler::finish(std::string name, const CsvText& file) {
  using Kind = ColumnProfile::Kind;
  column_.name = std::move(name);
  column_.kind = kind();
  if (column_.kind == Kind::date && column_.texts == 0)
    column_.dates = compact_.days == column_.numbers ? compact_ : seconds_;
  const bool has_commas =
      column_.comma_numbers > 0 && is_most(column_.comma_numbers + column_.numbers, column_);
  if (has_commas || (column_.texts > 0 && is_most(column_.numbers, column_))) {
    const Cell& odd = has_commas ? comma_ : text_;
    column_.odd_text = odd.text;
    column_.odd_line = file.line_of(odd.at);
  }
  const int64_t others = column_.texts - named_missing_, known = others + column_.numbers;
  const bool is_known = others == column_.amounts || (column_.numbers == 0 && others == column_.dates.days);
  column_.are_amounts = column_.kind == Kind::text && others > 0 && others == column_.amounts;
  column_.is_amount = is_amount_;
  if (has_marker())
    column_.missing_names.push_back(other_text_);
  else if (!is_known || known < named_missing_)
    column_.missing_names.clear();
  if (column_.kind != Kind::text) {
    column_.missing += missing_numbers_;
    for (double& value : column_.sample)
      if (gaps_.contains(value)) value = std::numeric_limits<double>::quiet_NaN();
    std::erase_if(counts_, [&](const auto& value) { return values_->is_gap(value.first); });
  }
  const std::map<std::string_view, int64_t> sorted(counts_.begin(), counts_.end());
  for (const auto& [value, count] : sorted) {
    column_.values.emplace_back(value);
    column_.counts.push_back(count);
  }
  column_.distinct = column_.distinct && column_.kind != Kind::empty;
  column_.counts_up = column_.counts_up && column_.kind == Kind::number && column_.missing == 0;
  if (column_.numbers > 0) column_.deviation = std::sqrt(squares_ / static_cast<double>(column_.numbers));
  if (column_.texts > 0) column_.words = static_cast<double>(words_) / static_cast<double>(column_.texts);
  return std::move(column_);
}

}  // namespace dtrain
