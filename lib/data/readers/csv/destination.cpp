#include "data/readers/csv/destination.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/utf8.h"

namespace dtrain {

namespace {

template <class T>
void put(std::byte* dst, T value) {
  std::memcpy(dst, &value, sizeof value);
}

}  // namespace

std::vector<std::string_view> labels_in(std::string_view text, char separator) {
  std::vector<std::string_view> labels;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view label = text.substr(0, end);
    label.remove_prefix(std::min(label.find_first_not_of(" \t"), label.size()));
    label = label.substr(0, label.find_last_not_of(" \t") + 1);
    if (!label.empty()) labels.push_back(label);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return labels;
}

CategoryTable::CategoryTable(std::vector<std::string> values, bool other, std::optional<char> separator)
    : values_(std::move(values)), other_(other), separator_(separator) {
  for (size_t i = 0; i < values_.size(); ++i) index_.emplace(values_[i], static_cast<int32_t>(i));
}

int32_t CategoryTable::find(std::string_view text) const {
  const auto found = index_.find(text);
  return found == index_.end() ? -1 : found->second;
}

bool CsvDestination::store(std::string_view text, size_t row) const {
  std::byte* const dst = base + row * stride;
  if (kind == Kind::indicator) {
    put_real(is_missing(text) ? 1 : 0, dst);
    return true;
  }
  if (table) return store_category(text, dst);
  if (kind == Kind::tokens) return store_tokens(text, dst);
  if (kind == Kind::dates) return store_date(text, dst);
  if (kind == Kind::text) {
    if (text.size() > width) return false;
    std::memcpy(dst, text.data(), text.size());
    std::memset(dst + text.size(), 0, width - text.size());
    return true;
  }
  if (gap && values->is_gap(text)) {
    kind == Kind::int32 ? put(dst, static_cast<int32_t>(*gap)) : put_real(*gap, dst);
    return true;
  }
  const auto value = is_amount() ? values->amount(text) : values->number(text);
  if (!value || (values->has_na_numbers() && values->is_na_number(*value))) return false;
  if (kind == Kind::int32) {
    using Limits = std::numeric_limits<int32_t>;
    if (*value != std::floor(*value) || *value < Limits::min() || *value > Limits::max()) return false;
    put(dst, static_cast<int32_t>(*value));
    return true;
  }
  if (!std::isfinite(static_cast<float>(*value)) || (kind == Kind::weight && *value < 0)) return false;
  put_counted(*value, dst);
  return true;
}

bool CsvDestination::store_date(std::string_view text, std::byte* dst) const {
  if (values->is_gap(text)) {
    if (!gap) return false;
    for (size_t i = 0; i < reading->dates.size(); ++i) put_real(*gap, dst + bytes_of(dtype) * i);
    return true;
  }
  const auto date = read_date(text, *reading->form);
  if (!date) return false;
  for (const DatePart part : reading->dates) {
    const auto number = part_of_date(*date, part);
    if (!number) return false;
    // `days` is the only part of a date whose numbers may have more digits than float32 can hold.
    part == DatePart::days ? put_counted(*number, dst) : put_real(*number, dst);
    dst += bytes_of(dtype);
  }
  return true;
}

bool CsvDestination::store_labels(std::string_view text, std::byte* dst) const {
  std::memset(dst, 0, bytes_of(dtype) * table->values().size());
  if (values->is_missing_name(text)) return true;  // an empty list of labels is valid
  for (const std::string_view label : labels_in(text, *table->separator())) {
    const int32_t index = table->find(label);
    if (index < 0) return false;
    put_real(1, dst + bytes_of(dtype) * static_cast<size_t>(index));
  }
  return true;
}

bool CsvDestination::store_category(std::string_view text, std::byte* dst) const {
  if (table->separator()) return store_labels(text, dst);
  const int32_t index = table->find(text);
  // With 0/1 features, a missing value is valid: all features are 0.
  if (index < 0 && !table->has_other() && !(kind == Kind::features && values->is_missing_name(text)))
    return false;
  const int32_t number = index + (table->has_other() ? 1 : 0);
  if (kind == Kind::index32) {
    put(dst, number);
  } else if (kind == Kind::index_float32) {
    put(dst, static_cast<float>(number));
  } else {
    std::memset(dst, 0, bytes_of(dtype) * table->values().size());
    if (index >= 0) put_real(1, dst + bytes_of(dtype) * static_cast<size_t>(index));
  }
  return true;
}

bool CsvDestination::store_tokens(std::string_view text, std::byte* dst) const {
  if (tokenizer->needs_utf8() && !is_utf8(text)) return false;
  put_tokens(*tokenizer, text, {reinterpret_cast<int32_t*>(dst), width / sizeof(int32_t)});
  return true;
}

/// Describes a valid date for a message. The text includes the order of day and month, because a date in the
/// other order is not valid.
std::string CsvDestination::expected_date() const {
  std::string parts;
  for (const DatePart part : reading->dates)
    for (const auto& [known, name] : names_of<DatePart>)
      if (known == part) parts += (parts.empty() ? "" : ", ") + name;
  const char* const order = reading->form->day_first ? "day/month/year" : "month/day/year";
  return fmt::format("a date with {} (in the order {})", parts, order);
}

std::string CsvDestination::expected() const {
  if (table && table->separator())
    return fmt::format("labels of the training file, separated by '{}'", *table->separator());
  if (table) return "one of the training file's values";
  return kind == Kind::int32    ? "an integer (int32)"
         : kind == Kind::weight ? "a weight of at least 0"
         : kind == Kind::tokens ? "text in UTF-8"
         : kind == Kind::dates  ? expected_date()
         : is_amount()          ? "an amount"
                                : "a finite number";
}

}  // namespace dtrain
