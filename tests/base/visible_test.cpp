// Escaping of control characters in text that comes from data or file names, before it is shown on a terminal
// or in a message.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/utf8.h"

using namespace dtrain;
using namespace std::string_literals;

TEST_CASE("control characters are escaped, other characters and bytes are unchanged") {
  for (const auto& [text, shown] : {
           std::pair{"plain, caf\xc3\xa9, \xe6\x97\xa5, \xf0\x9f\x98\x80, a\nb\tc"s, ""s},
           {"\x1b]0;title\x07"s, "\\x1b]0;title\\x07"s},
           {"a\0b"s, "a\\x00b"s},
           {"end\r\n"s, "end\\r\n"s},
           {"\x7f"s, "\\x7f"s},
           // U+009B is a single control character that begins an escape sequence.
           {"\xc2\x9b[31m, \xc2\xa0"s, "\\u009b[31m, \xc2\xa0"s},
           {"\x9b, \xe9, \xc2"s, "\\x9b, \xe9, \xc2"s},  // invalid UTF-8
       }) {
    CHECK(visible(text) == (shown.empty() ? text : shown));
    CHECK(is_visible(text) == shown.empty());
  }
  CHECK(visible_in_line("a\nb\tc") == "a\\nb\\tc");
}

TEST_CASE("an error's message keeps the characters after a NUL") {
  CHECK(UserError("a.csv:2:1: found '1\0', a number was expected"s).what() ==
        "a.csv:2:1: found '1\\x00', a number was expected"s);
}
