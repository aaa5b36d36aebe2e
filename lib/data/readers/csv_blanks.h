// Turns text with comments, or with blanks between values, into plain delimited text.
#pragma once

#include <optional>
#include <span>

namespace dtrain {

/// Overwrites comments, which begin with `comment` outside of quotes and end with their line, with blanks.
/// With `blanks_delimit`, a tab takes the place of the first blank of each run between two values, and spaces
/// that of the others. The length and the ends of lines stay, so places in the text are the file's.
void make_plain(std::span<char> text, char delimiter, bool blanks_delimit, std::optional<char> comment);

}  // namespace dtrain
