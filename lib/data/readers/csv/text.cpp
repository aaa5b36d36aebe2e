#include "data/readers/csv/text.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/loader/parallel.h"
#include "data/readers/csv/blanks.h"

namespace dtrain {

namespace {

constexpr int64_t kTextBytes = int64_t{1} << 20;

bool is_space(char c) {
  return c == ' ' || c == '\t';
}

const char* find_byte(const char* p, const char* end, char byte) {
  const void* found = p < end ? std::memchr(p, byte, static_cast<size_t>(end - p)) : nullptr;
  return found ? static_cast<const char*>(found) : end;
}

/// Returns the first position of one of the two bytes, or `end` if the text has neither. Checks eight bytes
/// at a time. If several of the eight bytes match, the method finds only the first match reliably, which is
/// sufficient here (Warren, Hacker's Delight, 6-1).
const char* find_either(const char* p, const char* end, char a, char b) {
  if constexpr (std::endian::native == std::endian::little) {
    constexpr uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
    const auto zeros = [](uint64_t word) { return (word - kOnes) & ~word & kTops; };
    const uint64_t all_a = kOnes * static_cast<unsigned char>(a);
    const uint64_t all_b = kOnes * static_cast<unsigned char>(b);
    for (uint64_t word = 0; end - p >= 8; p += 8) {
      std::memcpy(&word, p, sizeof word);
      if (const uint64_t found = zeros(word ^ all_a) | zeros(word ^ all_b))
        return p + std::countr_zero(found) / 8;
    }
  }
  while (p < end && *p != a && *p != b) ++p;
  return p;
}

/// Throws UserError if the lines end with carriage returns only, as in files of old versions of Excel for
/// Mac. Otherwise, the whole file would be read as one row.
void reject_carriage_returns(const std::string& path, std::string_view start) {
  const size_t first = start.find('\r');
  if (first == std::string_view::npos || first + 1 >= start.size() ||
      start.find_first_of("\n\"") != std::string_view::npos)
    return;
  throw UserError(
      fmt::format("{}: expected lines that end with a newline, found lines that end with a carriage return; "
                  "convert the file: {}",
                  path, piped("sed 's/\\r/\\n/g'", path, "lines.csv")));
}

}  // namespace

void reject_parquet(const std::string& path, std::string_view start) {
  if (start.starts_with("PAR1"))
    throw UserError(
        fmt::format("{}: expected delimited text, found a Parquet file, which dtrain cannot read; convert "
                    "the file in Python: pandas.read_parquet('a.parquet').to_csv('a.csv', index=False)",
                    path));
}

void reject_utf16(const std::string& path, std::string_view start) {
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff"))
    throw UserError(fmt::format("{}: expected text in UTF-8, found UTF-16; convert it: {}", path,
                                piped("iconv -f utf-16 -t utf-8", path, "utf8.csv")));
}

CsvText::CsvText(const std::string& path, char delimiter, std::optional<char> comment)
    : path_(path), delimiter_(delimiter == kBlanksDelimit ? '\t' : delimiter) {
  InputStream stream(path);
  if (stream.is_packed()) {
    unpacked_ = read_rest(stream);
    begin_ = unpacked_.data();
    end_ = begin_ + unpacked_.size();
  } else {
    mapped_ = std::make_unique<MappedFile>(path);
    begin_ = reinterpret_cast<const char*>(mapped_->data());
    end_ = begin_ + mapped_->size();
  }
  const std::string_view start(begin_, static_cast<size_t>(std::min<ptrdiff_t>(end_ - begin_, 4)));
  reject_parquet(path, start);
  reject_utf16(path, start);
  reject_carriage_returns(path,
                          {begin_, static_cast<size_t>(std::min<ptrdiff_t>(end_ - begin_, kTextBytes))});
  const size_t mark = start.starts_with("\xef\xbb\xbf") ? 3 : 0;
  if (comment || delimiter == kBlanksDelimit) {
    if (mapped_) unpacked_.assign(begin_, end_);
    begin_ = unpacked_.data();
    end_ = begin_ + unpacked_.size();
    make_plain(std::span(unpacked_).subspan(mark), delimiter_, delimiter == kBlanksDelimit, comment);
  }
  begin_ += mark;
}

void CsvText::check() const {
  if (mapped_) mapped_->check();
}

const char* CsvText::next_line(const char* p) const {
  const char* stop = find_byte(p, end_, '\n');
  return stop == end_ ? end_ : stop + 1;
}

bool CsvText::is_blank(char c) const {
  return (is_space(c) && (c != delimiter_ || c == ' ')) || c == kCommentMark;
}

bool CsvText::is_blank(const char* p, const char* line_end) const {
  while (p < line_end && (is_blank(*p) || *p == '\r' || *p == '\n')) ++p;
  return p == line_end;
}

const char* CsvText::skip_blank(const char* p) const {
  while (p < end_) {
    const char c = *p;
    if (c != '\n' && c != '\r' && !is_blank(c)) return p;
    const char* next = next_line(p);
    if (!is_blank(p, next) || is_kept(p, next)) return p;
    p = next;
  }
  return end_;
}

bool CsvText::is_kept(const char* p, const char* line_end) const {
  return p >= kept_begin_ && p < kept_end_ && find_byte(p, line_end, kCommentMark) == line_end;
}

const char* CsvText::keep_blank_lines(bool has_header) {
  const char* const first = skip_blank(begin_);
  const bool begins_with_comment = find_byte(begin_, first, kCommentMark) != first;
  kept_begin_ = has_header ? next_row(first, end_) : begins_with_comment ? first : begin_;
  kept_end_ = end_;
  while (kept_end_ > kept_begin_ && is_blank(kept_end_ - 1, kept_end_)) --kept_end_;
  return skip_blank(kept_begin_);
}

/// Divides the file into blocks that begin at the start of a line, assumes that each of these lines is the
/// start of a row, and reads all blocks independently. The assumption is wrong if a block begins within a
/// quoted value, but only the text before the block shows this. Such blocks are read again.
std::vector<CsvBlock> CsvText::blocks(const char* from) const {
  const int64_t count = (end_ - from + kTextBytes - 1) / kTextBytes;
  const auto boundary = [&](int64_t block) {
    return block == 0 ? from : block == count ? end_ : next_line(from + block * kTextBytes - 1);
  };
  // If the assumption is wrong, a block may have an opening quote without a closing quote. Therefore the
  // search for the end of a quoted value is limited.
  const auto farthest = [&](const char* limit) { return limit + std::min(kTextBytes, end_ - limit); };
  std::vector<CsvBlock> all(static_cast<size_t>(count));
  run_blocks(count, [&](int64_t i) {
    const char* const limit = boundary(i + 1);
    all[static_cast<size_t>(i)] = block_at(boundary(i), limit, farthest(limit));
  });
  const char* begin = skip_blank(from);
  int64_t rows = 0;
  for (int64_t i = 0; i < count; ++i) {
    CsvBlock& block = all[static_cast<size_t>(i)];
    const char* const limit = boundary(i + 1);
    const bool cut = farthest(limit) != end_ && block.end >= farthest(limit);
    if (block.begin != begin || cut) block = block_at(begin, limit, end_);
    block.first_row = rows;
    rows += block.rows;
    begin = block.end;
  }
  std::erase_if(all, [](const CsvBlock& block) { return block.rows == 0; });
  return all;
}

CsvBlock CsvText::block_at(const char* begin, const char* limit, const char* end) const {
  begin = skip_blank(begin);
  CsvBlock block{begin, begin, 0, 0};
  for (; block.end < limit; ++block.rows) block.end = skip_blank(next_row(block.end, end));
  return block;
}

// A quote begins a quoted value only if the quote is at the beginning of a field.
const char* CsvText::next_row(const char* p, const char* end) const {
  const char* const line = next_line(p);
  if (find_byte(p, line, '"') == line) return line;
  bool starts = true;  // a field starts here
  for (; p < end && *p != '\n'; ++p) {
    if (*p == '"' && starts) {
      for (p = find_byte(p + 1, end, '"'); end - p >= 2 && p[1] == '"';) p = find_byte(p + 2, end, '"');
      if (p == end) return p;
    }
    starts = *p == delimiter_ || (starts && is_space(*p));
  }
  return p == end ? p : p + 1;
}

int64_t CsvText::line_of(const char* at) const {
  return 1 + std::count(begin_, at, '\n');
}

void CsvText::fail(const char* at, const std::string& message) const {
  const char* line = at;
  while (line > begin_ && line[-1] != '\n') --line;
  throw UserError(fmt::format("{}:{}:{}: {}", path_, line_of(at), at - line + 1, message));
}

void CsvText::fail_line(const char* at, const std::string& message) const {
  throw UserError(fmt::format("{}:{}: {}", path_, line_of(at), message));
}

const char* CsvText::find(int64_t row, size_t field) const {
  CsvFields fields(*this);
  CsvField found;
  const char* p = skip_blank(begin_);
  for (int64_t i = 0; p < end_; ++i, p = skip_blank(p)) {
    for (size_t f = 0; p = fields.read(p, found), !found.last && (i < row || f < field);) ++f;
    if (i == row) return found.at;
  }
  return end_;
}

const char* CsvFields::read(const char* p, CsvField& field) {
  const char* const end = text_.end();
  const char delimiter = text_.delimiter();
  while (p < end && is_space(*p) && *p != delimiter) ++p;
  if (p < end && *p == '"') return read_quoted(p, field);
  const char* const stop = find_either(p, end, delimiter, '\n');
  const char* last = stop;
  if (stop == end || *stop == '\n')
    if (last > p && last[-1] == '\r') --last;
  while (last > p && is_space(last[-1])) --last;
  field.text = {p, static_cast<size_t>(last - p)};
  field.at = p;
  return finish(stop, field);
}

const char* CsvFields::finish(const char* p, CsvField& field) const {
  field.last = p == text_.end() || *p == '\n';
  return p == text_.end() ? p : p + 1;
}

const char* CsvFields::read_quoted(const char* p, CsvField& field) {
  const char* const end = text_.end();
  field.at = p;
  const char* begin = p + 1;
  const char* stop = find_byte(begin, end, '"');
  bool escaped = false;
  while (end - stop >= 2 && stop[1] == '"') {
    escaped = true;
    stop = find_byte(stop + 2, end, '"');
  }
  if (stop == end)
    text_.fail(p, "expected a closing quote for the value that begins here, found the end of the file");
  field.text = {begin, static_cast<size_t>(stop - begin)};
  if (escaped) {
    unescaped_.clear();
    for (const char* c = begin; c < stop; ++c) {
      unescaped_ += *c;
      if (*c == '"') ++c;
    }
    field.text = unescaped_;
  }
  for (p = stop + 1; p < end && *p != text_.delimiter() && *p != '\n'; ++p)
    if (!is_space(*p) && *p != '\r')
      text_.fail(p, fmt::format("expected '{}' or the end of the line after a quoted value, found '{}'",
                                text_.delimiter(), std::string_view(p, 1)));
  return finish(p, field);
}

size_t CsvFields::count(const char* p) {
  CsvField field;
  for (size_t fields = 1;; ++fields) {
    p = read(p, field);
    if (field.last) return fields;
  }
}

}  // namespace dtrain
