// Text that may contain bytes that are not UTF-8, as Linux file names may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

/// Returns the length of the UTF-8 sequence at the front, or 0 if there is none. Overlong forms and
/// surrogates are invalid.
size_t utf8_length(std::string_view text);

/// Returns true if the whole text is valid UTF-8.
bool is_utf8(std::string_view text);

/// Appends the UTF-8 encoding of a code point up to U+10FFFF. Surrogates, which UTF-8 excludes, are encoded
/// in three bytes like other code points.
void append_utf8(std::string& out, uint32_t code_point);

/// Returns the escape for a byte that is not valid UTF-8, for JSON and YAML, which are Unicode: a lone
/// surrogate, "\udc80" to "\udcff". This is Python's "surrogateescape" convention, so Python opens the right
/// file if it reads the file's name from either format.
std::string escaped_byte(unsigned char byte);

/// Returns the byte that this code point escapes, or nullopt.
std::optional<char> byte_of_escape(uint32_t code_point);

/// Returns the text if it has at most `most` bytes; otherwise its first characters, up to `most` bytes, and
/// "...".
std::string shortened(std::string text, size_t most);

/// Returns the text with control characters escaped for a terminal ("\\x1b", "\\u009b"), including C1 control
/// characters, and bytes of the same values that are not UTF-8. Line breaks and tabs are kept.
std::string visible(std::string_view text);
/// Like visible(), but also escapes line breaks and tabs.
std::string visible_in_line(std::string_view text);
/// Returns true if visible() would change nothing.
bool is_visible(std::string_view text);

/// Returns the text with ASCII capitals converted to lower case, independent of the locale.
std::string in_small_letters(std::string text);

}  // namespace dtrain
