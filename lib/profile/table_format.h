// How the text of a table is cut into rows and values, for `dtrain new`.
#pragma once

#include <optional>
#include <string>

namespace dtrain {

struct TableFormat {
  char delimiter = ',';         // or kBlanksDelimit (data/readers/csv_text.h)
  std::optional<char> comment;  // begins lines that are passed over
};

/// A guess by the first lines. Throws UserError where lines look like comments and their first character is
/// part of values, too.
TableFormat look_at_format(const std::string& path);

/// A delimiter as the configuration writes it.
std::string yaml_delimiter(char delimiter);

/// A shell command that reads a file, unpacked, and writes another: `command` is what filters it.
std::string piped(const std::string& command, const std::string& file, const std::string& to);

}  // namespace dtrain
