// Numbers as people read them, and tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace dtrain {

/// A number with its thousands apart: "1,234,567".
std::string format_count(int64_t count);
/// Losses and metrics: "0.0931", and "1.4e-13", "3.2e+07" where four decimals would not do.
std::string format_value(double value);
/// Minutes and seconds, and hours where there are any: "0:07", "12:05", "3:02:11".
std::string format_duration(double seconds);
/// The text as a shell takes it for one word: in quotes where it needs them.
std::string shell_word(const std::string& text);
/// A count with its noun: "1 epoch", "2 epochs", "1,000 epochs".
std::string format_plural(int64_t count, const std::string& noun);

/// A table whose columns are as wide as what is in them, under their titles. Control characters in them are
/// escaped.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns);
  void add(std::vector<std::string> row);
  std::string str() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace dtrain
