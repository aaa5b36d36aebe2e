// Where the values of one field of every line go: elements of a column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "data/readers/digit_loss.h"

namespace dtrain {

/// The different texts of a column of categories, and the index of each. Not copied: the index views them.
class CategoryTable {
 public:
  /// `other`: whether what is not among the values is index 0, before them, or none of their features.
  CategoryTable(std::vector<std::string> values, bool other);
  CategoryTable(const CategoryTable&) = delete;
  CategoryTable& operator=(const CategoryTable&) = delete;

  const std::vector<std::string>& values() const { return values_; }
  bool has_other() const { return other_; }
  /// Among values(); -1 for what is not there.
  int32_t find(std::string_view text) const;

 private:
  std::vector<std::string> values_;
  bool other_;
  std::unordered_map<std::string_view, int32_t> index_;
};

struct CsvDestination {
  enum class Kind {
    real,  // of `dtype`
    int32,
    index32,        // in `table`
    index_float32,  // the same, as a float
    features,       // 0 or 1 of `dtype` for each value of `table`
    weight,         // a float of at least 0
    text,           // bytes, and zeros up to `width`
  };
  Kind kind = Kind::real;
  DType dtype = DType::float32;  // or float64
  std::byte* base = nullptr;     // of row 0
  size_t stride = 0;             // bytes from one row to the next
  size_t width = 0;              // bytes of a text
  const CategoryTable* table = nullptr;
  std::optional<double> gap = {};  // what stands for a value that is not there
  std::string_view advice_for_gap = {}, advice_for_unknown = {};
  DigitLoss* loss = nullptr;  // counts what is stored as float32; null: nothing is to be counted

  /// Writes the row's element; false where the text is not what it must be, or is longer than `width`.
  bool store(std::string_view text, size_t row) const;
  /// The same for the number of a field that is `real`.
  bool store_number(double value, size_t row) const { return store_real(value, base + row * stride); }
  /// As the text must be, for a message: "a finite number"; of categories, one of the table's.
  std::string expected() const;

 private:
  bool store_category(std::string_view text, std::byte* dst) const;
  bool store_real(double value, std::byte* dst) const;
};

}  // namespace dtrain
