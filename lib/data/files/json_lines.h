// JSON lines: a text in which each line is a JSON value and has the data of one sample.
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

/// Returns true if a text looks like JSON lines: its first character after spaces opens an object or an
/// array.
bool is_json_lines(std::string_view start);

/// Returns true if the first line has arrays as values: an object with an array in it, or an array of arrays.
bool has_nested_arrays(std::string_view text);

/// Converts JSON lines to a table with one row per line. From objects, the header gets all keys in order of
/// first appearance; missing keys and null become gaps. Arrays become rows of a table without a header.
/// Throws UserError, with `name` and the line, for a line that is neither an object nor an array or that
/// differs in type from the first line, and for a value that is itself an object or an array.
TableText table_of_json_lines(std::string_view text, const std::string& name);

/// Makes an array of the values of each key (of the lines themselves if these are arrays), in order of
/// appearance. Throws UserError, with `name` and the line, for a line whose keys or shapes differ from those
/// of the first line, and for a value that is not a number, true, false or an array of these.
std::vector<JsonArray> arrays_of_json_lines(std::string_view text, const std::string& name);

}  // namespace dtrain
