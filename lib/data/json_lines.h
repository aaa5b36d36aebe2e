// JSON lines: one JSON value per line.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

/// Comma-separated text.
struct TableText {
  std::string text;
  bool has_header = false;
};

/// Returns true if a text looks like JSON lines: its first character except spaces opens an object or an
/// array.
bool is_json_lines(std::string_view start);

/// Converts JSON lines to a table with one row per line. From objects, the header gets all keys in order of
/// first appearance; missing keys and null become gaps. Arrays become rows of a table without a header.
/// Throws UserError, with `name` and the line, for a line that is neither or differs in type from the first
/// line, and for a value that is itself an object or an array.
TableText table_of_json_lines(std::string_view text, const std::string& name);

}  // namespace dtrain
