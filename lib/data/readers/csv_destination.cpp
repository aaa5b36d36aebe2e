#include "data/readers/csv_destination.h"

#include <cstring>
#include <limits>

#include "data/readers/csv_values.h"

namespace dtrain {

namespace {

template <class T>
void put(std::byte* dst, T value) {
  std::memcpy(dst, &value, sizeof value);
}

void put_real(std::byte* dst, DType dtype, double value) {
  dtype == DType::float64 ? put(dst, value) : put(dst, static_cast<float>(value));
}

}  // namespace

CategoryTable::CategoryTable(std::vector<std::string> values, bool other)
    : values_(std::move(values)), other_(other) {
  for (size_t i = 0; i < values_.size(); ++i) index_.emplace(values_[i], static_cast<int32_t>(i));
}

int32_t CategoryTable::find(std::string_view text) const {
  const auto found = index_.find(text);
  return found == index_.end() ? -1 : found->second;
}

bool CsvDestination::store(std::string_view text, size_t row) const {
  std::byte* const dst = base + row * stride;
  if (table) return store_category(text, dst);
  if (kind == Kind::text) {
    if (text.size() > width) return false;
    std::memcpy(dst, text.data(), text.size());
    std::memset(dst + text.size(), 0, width - text.size());
    return true;
  }
  if (gap && is_csv_gap(text)) {
    kind == Kind::int32 ? put(dst, static_cast<int32_t>(*gap)) : put_real(dst, dtype, *gap);
    return true;
  }
  const auto value = csv_number(text);
  if (!value) return false;
  if (kind == Kind::int32) {
    using Limits = std::numeric_limits<int32_t>;
    if (*value != std::floor(*value) || *value < Limits::min() || *value > Limits::max()) return false;
    put(dst, static_cast<int32_t>(*value));
    return true;
  }
  return (kind != Kind::weight || *value >= 0) && store_real(*value, dst);
}

bool CsvDestination::store_real(double value, std::byte* dst) const {
  if (!std::isfinite(static_cast<float>(value))) return false;
  if (loss) loss->add(value);
  put_real(dst, dtype, value);
  return true;
}

bool CsvDestination::store_category(std::string_view text, std::byte* dst) const {
  const int32_t index = table->find(text);
  // A gap is none of the features.
  if (index < 0 && !table->has_other() && !(kind == Kind::features && is_csv_missing_name(text)))
    return false;
  const int32_t number = index + (table->has_other() ? 1 : 0);
  if (kind == Kind::index32) {
    put(dst, number);
  } else if (kind == Kind::index_float32) {
    put(dst, static_cast<float>(number));
  } else {
    std::memset(dst, 0, bytes_of(dtype) * table->values().size());
    if (index >= 0) put_real(dst + bytes_of(dtype) * static_cast<size_t>(index), dtype, 1);
  }
  return true;
}

std::string CsvDestination::expected() const {
  if (table) return "one of the training file's values";
  return kind == Kind::int32    ? "an integer (int32)"
         : kind == Kind::weight ? "a weight of at least 0"
                                : "a finite number";
}

}  // namespace dtrain
