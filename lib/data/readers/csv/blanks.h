// Converts text with comments, or with blanks between values, to plain delimited text.
#pragma once

#include <optional>
#include <span>

namespace dtrain {

/// The character that overwrites a comment in a line without values. It distinguishes this line from a blank
/// line, because a blank line may be a row (CsvText::keep_blank_lines()).
inline constexpr char kCommentMark = '\v';

/// Overwrites comments with spaces, or with kCommentMark in lines without values. A comment begins with
/// `comment` outside of quotes and ends with its line. If `blanks_delimit` is true, the first blank of each
/// run between two values becomes a tab, and the others become spaces. The length and the line ends do not
/// change, so positions in the text are positions in the file.
void make_plain(std::span<char> text, char delimiter, bool blanks_delimit, std::optional<char> comment);

}  // namespace dtrain
