#include "data/text/text_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace dtrain {

namespace {

/// Smaller files are read into memory, because a mapped file stays open, and the number of open files is
/// limited.
constexpr int64_t kFewestMappedBytes = int64_t{1} << 20;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

TextFile::TextFile(const std::string& path) : path_(path) {
  InputStream stream(path);
  if (!stream.is_packed() && stream.file()->size() >= kFewestMappedBytes)
    mapped_ = std::make_unique<const MappedFile>(path);
  else
    read_ = read_rest(stream);
}

std::string_view TextFile::text() const {
  std::string_view text = read_;
  if (mapped_) text = {reinterpret_cast<const char*>(mapped_->data()), mapped_->size()};
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

void TextFile::check() const {
  if (mapped_) mapped_->check();
}

void check_utf8(std::string_view text, const std::string& path) {
  const bool is_utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t length = utf8_length(text.substr(at));
    if (length == 0)
      throw UserError(
          fmt::format("{}: expected text in UTF-8, found the byte 0x{:02x} at byte {} (line {}); "
                      "convert the file, for example with `iconv -f {} -t utf-8`, or use `tokens: bytes` or "
                      "`tokens: bpe`, which accept any bytes",
                      path, static_cast<unsigned char>(text[at]), at,
                      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
                      is_utf16 ? "utf-16" : "latin1"));
    at += length;
  }
}

}  // namespace dtrain
