// Distinguishes prose from tables, for `dtrain new`.
#pragma once

#include <string>

namespace dtrain {

/// Returns true if the path ends in .txt, in upper or lower case.
bool has_ending_of_text(const std::string& path);

/// Returns true for a .txt file that contains prose. The file is a table if nearly all lines have the same
/// number of values when they are split at commas, semicolons, tabs, vertical bars or blanks, and if the
/// values also look like those of a table: a column of numbers, dates or categories, a header such as
/// `sepal_length`, or delimiters that do not occur like this in sentences.
bool is_prose(const std::string& path);

}  // namespace dtrain
