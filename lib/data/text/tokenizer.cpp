#include "data/text/tokenizer.h"

#include <algorithm>

#include "base/utf8.h"

namespace dtrain {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

/// Returns the number of bytes of a UTF-8 character that begins with this byte. Returns 1 if no character can
/// begin with it.
size_t announced_length(unsigned char first) {
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}

/// Returns true if `text` may be the beginning of a character that more bytes would complete.
bool may_continue(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (text.size() >= announced_length(first)) return false;
  for (const char c : text.substr(1))
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) return false;
  return true;
}

/// Moves the complete characters from the beginning of `bytes` to the result. An incomplete character at the
/// end stays in `bytes`, unless `is_end` is true. Bytes that do not belong to a character become U+FFFD.
std::string take_characters(std::string& bytes, bool is_end) {
  std::string text;
  size_t at = 0;
  while (at < bytes.size()) {
    const std::string_view rest = std::string_view(bytes).substr(at);
    if (const size_t length = utf8_length(rest); length > 0) {
      text += rest.substr(0, length);
      at += length;
    } else if (!is_end && may_continue(rest)) {
      break;
    } else {
      text += kReplacement;
      ++at;
    }
  }
  bytes.erase(0, at);
  return text;
}

}  // namespace

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    const std::string_view bytes = piece(id);
    if (bytes.empty()) continue;
    if (!text.empty()) text += separator();
    text += bytes;
  }
  return text;
}

void put_tokens(const Tokenizer& tokenizer, std::string_view text, std::span<int32_t> row) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  const size_t count = std::min(ids.size(), row.size());
  std::copy_n(ids.begin(), count, row.begin());
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(count), row.end(), kPaddingToken);
}

std::string TokenStream::add(int32_t id) {
  const std::string_view bytes = tokenizer_->piece(id);
  if (bytes.empty()) return "";
  if (has_begun_) pending_ += tokenizer_->separator();
  has_begun_ = true;
  pending_ += bytes;
  return take_characters(pending_, false);
}

std::string TokenStream::finish() {
  return take_characters(pending_, true);
}

}  // namespace dtrain
