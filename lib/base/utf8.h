// Text that may hold bytes which are no UTF-8, as names of files on Linux may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

/// The length of the UTF-8 sequence at the front (no overlong forms, no surrogates), or 0 where there is
/// none.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

/// Appends a code point up to U+10FFFF. Surrogates, which UTF-8 does not have, become the three bytes that
/// they would have.
void append_utf8(std::string& out, uint32_t code_point);

/// How a byte that is no part of UTF-8 stands in JSON and in YAML, both of which are Unicode: as the escape
/// of a lone surrogate, "\udc80" to "\udcff". This is Python's convention ("surrogateescape"), whose readers
/// of both turn it back into the byte where it names a file.
std::string escaped_byte(unsigned char byte);

/// The byte that this code point stands for, or nothing.
std::optional<char> byte_of_escape(uint32_t code_point);

/// The text; where it has more than `most` bytes, the whole characters among the first of these, and "...".
std::string shortened(std::string text, size_t most);

/// The text for a terminal: control characters, those above ASCII and stray bytes of their values included,
/// are escaped ("\\x1b", "\\u009b"). Ends of lines and tabs stay.
std::string visible(std::string_view text);
/// visible(), with ends of lines and tabs escaped, too ("\\n").
std::string visible_in_line(std::string_view text);
/// Whether visible() would change nothing.
bool is_visible(std::string_view text);

/// The text with ASCII's capital letters made small, whatever the locale.
std::string in_small_letters(std::string text);

}  // namespace dtrain
