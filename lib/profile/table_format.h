// Detects how a table's text is split into rows and values, for `dtrain new`.
#pragma once

#include <optional>
#include <string>

namespace dtrain {

struct TableFormat {
  char delimiter = ',';         // or kBlanksDelimit (data/readers/csv/text.h)
  std::optional<char> comment;  // first character of comment lines, which are skipped
};

/// Guesses the format from the first lines. Throws UserError if lines look like comments but their first
/// character also occurs in values.
TableFormat detect_format(const std::string& path);

/// Returns a delimiter as written in the configuration.
std::string yaml_delimiter(char delimiter);

}  // namespace dtrain
