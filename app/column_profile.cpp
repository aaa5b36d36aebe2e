#include "column_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "data/readers/csv_dates.h"
#include "data/readers/csv_values.h"

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

}  // namespace

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
  // Points between thousands: "1.234.567".
  for (size_t i = 0; i < whole.size(); ++i)
    if ((whole.size() - i) % 4 == 0 ? whole[i] != '.' : !is_digit(whole[i])) return false;
  return is_digit(whole.front());
}

void ColumnProfiler::add(std::string_view text, const char* at) {
  add_to_sample(add_value(text, at));
  ++rows_;
}

/// Returns the value's element of the sample.
double ColumnProfiler::add_value(std::string_view text, const char* at) {
  double value = std::numeric_limits<double>::quiet_NaN();
  if (is_csv_missing_name(text)) {
    ++column_.missing;
    return value;
  }
  // Among numbers it is a missing value, among texts a name like others.
  if (is_csv_gap(text)) {
    ++missing_numbers_;
    value = hash_of(text);
    gaps_.insert(value);
  } else if (const auto number = csv_number(text)) {
    add_number(*number);
    value = *number;
  } else {
    value = add_text(text, at);
  }
  constexpr size_t kMostHashes = 5'000'000;
  if (column_.distinct && hashes_.size() < kMostHashes)
    column_.distinct = hashes_.insert(TextHash()(text)).second;
  if (!column_.many_values) count(text);
  return value;
}

void ColumnProfiler::add_number(double number) {
  const double start = column_.numbers == 0 ? number : column_.least;
  column_.counts_up = column_.counts_up && (start == 0 || start == 1) &&
                      number == start + static_cast<double>(column_.numbers);
  column_.least = column_.numbers == 0 ? number : std::min(column_.least, number);
  column_.most = column_.numbers == 0 ? number : std::max(column_.most, number);
  column_.whole = column_.whole && number == std::floor(number);
  ++column_.numbers;
  const double from_mean = number - column_.mean;
  column_.mean += from_mean / static_cast<double>(column_.numbers);
  squares_ += from_mean * (number - column_.mean);
}

double ColumnProfiler::add_text(std::string_view text, const char* at) {
  if (column_.texts++ == 0) text_ = {std::string(text), at};
  words_ += words_of(text);
  if (is_csv_date(text)) ++dates_;
  if (is_comma_number(text) && column_.comma_numbers++ == 0) comma_ = {std::string(text), at};
  return hash_of(text);
}

/// Where the sample grows too large, every other element goes.
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

ColumnProfile ColumnProfiler::finish(std::string name, const CsvText& file) {
  using Kind = ColumnProfile::Kind;
  column_.name = std::move(name);
  column_.kind = column_.texts > (column_.numbers > 0 ? 0 : dates_) ? Kind::text
                 : dates_ > 0                                       ? Kind::date
                 : column_.numbers > 0                              ? Kind::number
                                                                    : Kind::empty;
  const bool has_commas =
      column_.comma_numbers > 0 && is_most(column_.comma_numbers + column_.numbers, column_);
  if (has_commas || (column_.texts > 0 && is_most(column_.numbers, column_))) {
    const Cell& odd = has_commas ? comma_ : text_;
    column_.odd_text = odd.text;
    column_.odd_line = file.line_of(odd.at);
  }
  if (column_.kind != Kind::text) {
    column_.missing += missing_numbers_;
    for (double& value : column_.sample)
      if (gaps_.contains(value)) value = std::numeric_limits<double>::quiet_NaN();
    std::erase_if(counts_, [](const auto& value) { return is_csv_gap(value.first); });
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
