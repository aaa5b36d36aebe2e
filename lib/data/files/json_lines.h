// JSON lines: a value a line.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

/// Delimited text, with commas.
struct TableText {
  std::string text;
  bool has_header = false;
};

/// Whether a text looks like JSON lines: its first character, spaces aside, opens an object or an array.
bool is_json_lines(std::string_view start);

/// Makes a table of JSON lines, with a row for each line. Objects give the header: all of their keys, in the
/// order in which they come; a key that a line lacks, and null, are gaps. Arrays give the values of a row.
/// Throws UserError, with `name` and the line, for a line that is neither, or differs from the first line in
/// that, and for a value that is an object or an array itself.
TableText table_of_json_lines(std::string_view text, const std::string& name);

}  // namespace dtrain
