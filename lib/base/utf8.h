// Text that may contain bytes that are not UTF-8, as Linux file names may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

/// Returns the length of the UTF-8 sequence at the start of the text, or 0 if the text does not start with a
/// valid one. Overlong forms and surrogates are invalid.
size_t utf8_length(std::string_view text);

/// Returns true if the whole text is valid UTF-8.
bool is_utf8(std::string_view text);

/// Appends the UTF-8 encoding of a code point up to U+10FFFF. Surrogates, which are not valid in UTF-8, are
/// encoded in three bytes like other code points of this size.
void append_utf8(std::string& out, uint32_t code_point);

/// Returns the escape that represents a byte that is not valid UTF-8 in JSON and YAML, whose texts must be
/// Unicode. The escape is a lone surrogate, "\udc80" to "\udcff". Python uses the same convention
/// ("surrogateescape"), so a Python program that reads a file name from JSON or YAML can open the file.
std::string escaped_byte(unsigned char byte);

/// Returns the byte that this code point escapes, or nullopt.
std::optional<char> byte_of_escape(uint32_t code_point);

/// Returns the text if it has at most `most` bytes; otherwise its first characters, up to `most` bytes, and
/// "...".
std::string shortened(std::string text, size_t most);

/// Returns the text with control characters replaced by escapes ("\\x1b", "\\u009b"), so that it can be
/// printed to a terminal. C1 control characters are also escaped, both in UTF-8 and as single bytes that are
/// not valid UTF-8. Line breaks and tabs are kept.
std::string visible(std::string_view text);
/// Like visible(), but also escapes line breaks and tabs.
std::string visible_in_line(std::string_view text);
/// Returns true if visible() would change nothing.
bool is_visible(std::string_view text);

/// Returns the text with ASCII capital letters converted to lower case, independently of the locale.
std::string in_small_letters(std::string text);

}  // namespace dtrain
