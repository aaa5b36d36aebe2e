// Formatting of numbers and tables for display.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace dtrain {

/// Formats a number with thousands separators: "1,234,567".
std::string format_count(int64_t count);
/// Formats a loss or metric, e.g. "0.0931". Magnitudes below 0.001 and from 1e6 on use exponents, e.g.
/// "1.4e-13" and "3.2e+07".
std::string format_value(double value);
/// Formats a duration, e.g. "0:07", "12:05" or "3:02:11". From 100 hours on, the text contains days and
/// hours.
std::string format_duration(double seconds);
/// Returns the text as one shell word, quoted if necessary.
std::string shell_word(const std::string& text);
/// Returns a shell command that passes the content of `file` through the filter `command` and writes the
/// result to the file `to`. A file that ends in .gz is unpacked before the filter.
std::string piped(const std::string& command, const std::string& file, const std::string& to);
/// Formats a count with its noun: "1 epoch", "2 epochs", "1,000 epochs".
std::string format_plural(int64_t count, const std::string& noun);

/// A text table with columns as wide as their content. Escapes control characters.
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
