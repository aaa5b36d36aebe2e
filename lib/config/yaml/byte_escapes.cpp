#include "config/yaml/byte_escapes.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/utf8.h"

namespace dtrain {

namespace {

constexpr size_t kEscape = 6;  // the length of an escape such as "\udc80"

/// Returns whether the text starts with an escape whose first two hexadecimal digits are `page`. The escapes
/// for bytes have the page "dc". The stand-in characters, which temporarily replace the escapes for bytes,
/// have other pages.
bool is_escape(std::string_view text, std::string_view page = "dc") {
  const auto lower = [&](size_t i) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
  };
  return text.size() >= kEscape && text.starts_with("\\u") && lower(2) == page[0] && lower(3) == page[1] &&
         std::string_view("89abcdef").find(lower(4)) != std::string_view::npos &&
         std::isxdigit(static_cast<unsigned char>(text[5]));
}

std::string page_of(unsigned stand_ins) {
  return fmt::format("{:02x}", stand_ins);
}

/// Returns true if the text may contain a character whose upper byte is `stand_ins`, either literally or as
/// an escape. Such characters cannot be used as stand-ins.
bool uses(std::string_view text, unsigned stand_ins) {
  std::string first, last;
  append_utf8(first, stand_ins << 8 | 0x80);
  append_utf8(last, stand_ins << 8 | 0xFF);
  const std::string page = page_of(stand_ins);
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == first[0] && text.substr(at, 3) >= first && text.substr(at, 3) <= last) return true;
    if (std::tolower(static_cast<unsigned char>(text[at])) != 'u') continue;
    for (const std::string_view zeros : {"", "0000"}) {
      std::string escape(text.substr(at + 1, zeros.size() + 2));
      std::transform(escape.begin(), escape.end(), escape.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      if (escape == std::string(zeros) + page) return true;
    }
  }
  return false;
}

}  // namespace

ByteEscapes::ByteEscapes(std::string_view text) : text_(text) {
  constexpr unsigned kFirst = 0xE0, kLast = 0xF8;  // U+E000 to U+F8FF are for private use
  std::string page;
  for (size_t at = 0; (at = text.find("\\u", at)) != std::string_view::npos; ++at) {
    if (!is_escape(text.substr(at))) continue;
    if (changed_.empty()) {
      stand_ins_ = kFirst;
      while (stand_ins_ <= kLast && uses(text, stand_ins_)) ++stand_ins_;
      if (stand_ins_ > kLast) return;  // no stand-ins are available, so the parser will reject the escape
      page = page_of(stand_ins_);
      changed_ = text;
    }
    changed_.replace(at + 2, 2, page);
  }
}

std::string ByteEscapes::restore(std::string scalar) const {
  if (changed_.empty()) return scalar;
  std::string out;
  std::string_view rest = scalar;
  const std::string page = page_of(stand_ins_);
  // The first stand-in character in UTF-8; all stand-in characters begin with the same byte.
  std::string lead;
  append_utf8(lead, stand_ins_ << 8);
  while (!rest.empty()) {
    // This stand-in is still written as an escape. The parser did not decode it, because it is outside double
    // quotes or after a backslash.
    if (is_escape(rest, page)) {
      out += "\\udc";
      rest.remove_prefix(4);
      continue;
    }
    const bool stands_in = rest.size() >= 3 && rest[0] == lead[0] &&
                           (static_cast<unsigned char>(rest[1]) & 0x3Eu) == ((stand_ins_ << 2 | 2) & 0x3Eu);
    if (stands_in) {
      out += static_cast<char>((static_cast<unsigned char>(rest[1]) & 0x03u) << 6 |
                               (static_cast<unsigned char>(rest[2]) & 0x3Fu));
      rest.remove_prefix(3);
    } else {
      out += rest[0];
      rest.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace dtrain
