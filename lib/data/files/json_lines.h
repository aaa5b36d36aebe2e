// JSON lines: a text in which each line is a JSON value that contains the data of one sample.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"
#include "data/files/stored_type.h"

namespace dtrain {

/// A table as comma-separated text.
struct TableText {
  std::string text;
  bool has_header = false;
};

/// The values of all samples for one input.
struct JsonArray {
  std::string name;  ///< the key in the lines' objects; "" if the lines are arrays
  Shape shape;       ///< [samples, ...]
  StoredType type;   ///< int64 if all numbers are integers, else float64
  std::string data;  ///< the elements' bytes, in row-major order
};

/// Returns true if a text may be JSON lines: its first character that is not whitespace is { or [.
bool may_be_json_lines(std::string_view start);

/// Returns true if a whole text is JSON lines and not a plain text that begins with a bracket, such as
/// "[verse 1]": if it begins with {, the next character must be " or }; if it begins with [, its first line
/// must be correct JSON.
bool is_json_lines(std::string_view text);

/// Returns true if the first line has arrays as values, that is, if it is an object that contains an array,
/// or an array that contains an array.
bool has_nested_arrays(std::string_view text);

/// Converts JSON lines to a table with one row per line. If the lines are objects, the header contains all
/// keys in order of first appearance, and a missing key or a null is a missing value. If the lines are
/// arrays, the table has no header. Throws UserError, with `name` and the line, for a line that is neither an
/// object nor an array or that differs in type from the first line, and for a value that is itself an object
/// or an array.
TableText table_of_json_lines(std::string_view text, const std::string& name);

/// Makes one array from the values of each key, in the order of the keys in the first line. If the lines are
/// arrays, makes a single array from all lines. Throws UserError, with `name` and the line, for a line whose
/// keys or shapes differ from those of the first line, and for a value that is not a number, true, false or
/// an array of these.
std::vector<JsonArray> arrays_of_json_lines(std::string_view text, const std::string& name);

}  // namespace dtrain
