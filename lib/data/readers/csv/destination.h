// Stores the values of one field of a table as elements of a column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "data/readers/csv/dates.h"
#include "data/readers/csv/digit_loss.h"
#include "data/readers/csv/values.h"
#include "data/text/tokenizer.h"

namespace dtrain {

/// Splits a text at each separator. Returns the parts without surrounding spaces, and omits empty parts.
std::vector<std::string_view> labels_in(std::string_view text, char separator);

/// The distinct texts of a column of categories and their indices. Not copyable, because `index_` refers to
/// the texts in `values_`.
class CategoryTable {
 public:
  /// If `other` is true, texts that are not in `values` are accepted. Their index is 0, and the indices of
  /// `values` begin at 1; with 0/1 features, all features of these texts are 0. `separator` is the character
  /// between the values of one text; unset if each text is one value.
  CategoryTable(std::vector<std::string> values, bool other, std::optional<char> separator);
  CategoryTable(const CategoryTable&) = delete;
  CategoryTable& operator=(const CategoryTable&) = delete;

  const std::vector<std::string>& values() const { return values_; }
  bool has_other() const { return other_; }
  std::optional<char> separator() const { return separator_; }
  /// Returns the index of the text in values(), or -1 if values() does not contain the text.
  int32_t find(std::string_view text) const;

 private:
  std::vector<std::string> values_;
  bool other_;
  std::optional<char> separator_;
  std::unordered_map<std::string_view, int32_t> index_;
};

struct CsvDestination {
  enum class Kind {
    real,  // a number, stored as `dtype`
    int32,
    index32,        // index in `table`
    index_float32,  // index in `table`, stored as a float
    features,       // one 0/1 number for each value of `table`, stored as `dtype`
    dates,          // one number for each part in `reading->dates`, stored as `dtype`
    indicator,      // 1 for a missing value, else 0, stored as `dtype`
    weight,         // a float of at least 0
    text,           // the bytes of the text, padded with zeros to `width` bytes
    tokens,         // the ids of the tokens, truncated or padded to `width` bytes
  };
  Kind kind = Kind::real;
  DType dtype = DType::float32;  // float32 or float64
  std::byte* base = nullptr;     // memory of the element in row 0
  size_t stride = 0;             // bytes from one row to the next
  size_t width = 0;              // bytes of an element of the kind `text` or `tokens`
  const CategoryTable* table = nullptr;
  const CsvValues* values = nullptr;       // notation of the values in the file
  const ColumnReading* reading = nullptr;  // how the column is read; null for the default way
  const Tokenizer* tokenizer = nullptr;
  std::optional<double> gap = {};  // value stored for a missing value; unset if a missing value is an error
  std::string_view advice_for_gap = {}, advice_for_unknown = {};
  DigitLoss* loss = nullptr;  // records the digits lost in float32; may be null

  /// Stores a text as the element of a row. Returns false if the text is not valid, or is longer than
  /// `width`.
  bool store(std::string_view text, size_t row) const;
  /// Describes the valid texts for a message: "a finite number" or "one of the training file's values".
  std::string expected() const;
  /// Returns true if store_number() has the same effect as store() for a plain number that float32 can hold.
  bool takes_plain_numbers() const { return kind == Kind::indicator || (kind == Kind::real && !is_amount()); }
  void store_number(double value, size_t row) const {
    kind == Kind::indicator ? put_real(0, base + row * stride) : put_counted(value, base + row * stride);
  }
  bool can_lose_digits() const {
    return dtype == DType::float32 && (kind == Kind::real || kind == Kind::dates);
  }

 private:
  bool is_amount() const { return reading && reading->amount; }
  bool is_missing(std::string_view text) const {
    return table ? values->is_missing_name(text) : values->is_gap(text);
  }
  std::string expected_date() const;
  bool store_date(std::string_view text, std::byte* dst) const;
  bool store_category(std::string_view text, std::byte* dst) const;
  bool store_labels(std::string_view text, std::byte* dst) const;
  bool store_tokens(std::string_view text, std::byte* dst) const;
  /// Writes `value` to `dst` as an element of type `dtype`.
  void put_real(double value, std::byte* dst) const {
    const auto single = static_cast<float>(value);
    dtype == DType::float64 ? std::memcpy(dst, &value, sizeof value)
                            : std::memcpy(dst, &single, sizeof single);
  }
  /// Like put_real(), but also records in `loss` the digits that float32 would lose.
  void put_counted(double value, std::byte* dst) const {
    if (loss) loss->add(value);
    put_real(value, dst);
  }
};

}  // namespace dtrain
