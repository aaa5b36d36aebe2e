#include "data/readers/csv_text.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "data/parallel.h"

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

std::string unpack(InputStream& stream) {
  std::string all;
  size_t size = 0;
  for (;;) {
    if (size == all.size()) all.resize(std::max<size_t>(size_t{1} << 20, 2 * size));
    const size_t got = stream.read(all.data() + size, all.size() - size);
    if (got == 0) break;
    size += got;
  }
  all.resize(size);
  return all;
}

}  // namespace

void refuse_parquet(const std::string& path, std::string_view start) {
  if (start.starts_with("PAR1"))
    throw UserError(
        fmt::format("{}: expected delimited text, found Parquet, which dtrain does not read; "
                    "convert it, in Python: pandas.read_parquet('a.parquet').to_csv('a.csv', "
                    "index=False)",
                    path));
}

CsvText::CsvText(const std::string& path, char delimiter) : path_(path), delimiter_(delimiter) {
  InputStream stream(path);
  if (stream.is_packed()) {
    unpacked_ = unpack(stream);
    begin_ = unpacked_.data();
    end_ = begin_ + unpacked_.size();
  } else {
    mapped_ = std::make_unique<MappedFile>(path);
    begin_ = reinterpret_cast<const char*>(mapped_->data());
    end_ = begin_ + mapped_->size();
  }
  const std::string_view start(begin_, static_cast<size_t>(std::min<ptrdiff_t>(end_ - begin_, 4)));
  refuse_parquet(path, start);
  if (start.starts_with("\xef\xbb\xbf")) begin_ += 3;
}

void CsvText::check() const {
  if (mapped_) mapped_->check();
}

const char* CsvText::next_line(const char* p) const {
  const char* stop = find_byte(p, end_, '\n');
  return stop == end_ ? end_ : stop + 1;
}

bool CsvText::is_blank(char c) const {
  return is_space(c) && (c != delimiter_ || c == ' ');
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
    if (!is_blank(p, next)) return p;
    p = next;
  }
  return end_;
}

std::vector<CsvBlock> CsvText::blocks(const char* from) const {
  if (from == end_) return {};
  std::vector<CsvBlock> all = find_byte(from, end_, '"') == end_ ? plain_blocks(from) : quoted_blocks(from);
  int64_t rows = 0;
  for (CsvBlock& block : all) {
    block.first_row = rows;
    rows += block.rows;
  }
  return all;
}

/// Ends of lines are ends of rows, so every block's lines are found and counted by themselves.
std::vector<CsvBlock> CsvText::plain_blocks(const char* from) const {
  const int64_t count = (end_ - from + kTextBytes - 1) / kTextBytes;
  std::vector<CsvBlock> all(static_cast<size_t>(count));
  const auto boundary = [&](int64_t block) {
    return block == 0 ? from : block == count ? end_ : next_line(from + block * kTextBytes - 1);
  };
  run_blocks(count, [&](int64_t i) {
    CsvBlock& block = all[static_cast<size_t>(i)];
    block.begin = boundary(i);
    block.end = boundary(i + 1);
    for (const char* p = skip_blank(block.begin); p < block.end; p = skip_blank(next_line(p))) ++block.rows;
  });
  return all;
}

/// Which quotes are open is known only from the beginning on. A quote opens where a field begins.
std::vector<CsvBlock> CsvText::quoted_blocks(const char* from) const {
  std::vector<CsvBlock> all;
  const char* p = skip_blank(from);
  while (p < end_) {
    if (all.empty() || p - all.back().begin >= kTextBytes) {
      if (!all.empty()) all.back().end = p;
      all.push_back({p, end_, 0, 0});
    }
    ++all.back().rows;
    bool starts = true;  // a field
    for (; p < end_ && *p != '\n'; ++p) {
      if (*p == '"' && starts) {
        for (p = find_byte(p + 1, end_, '"'); end_ - p >= 2 && p[1] == '"';) p = find_byte(p + 2, end_, '"');
        if (p == end_) break;
      }
      starts = *p == delimiter_ || (starts && is_space(*p));
    }
    p = skip_blank(p == end_ ? p : p + 1);
  }
  return all;
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
  const char* stop = p;
  while (stop < end && *stop != delimiter && *stop != '\n') ++stop;
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
  if (stop == end) text_.fail(p, "expected an end of the quote that begins here, found the end of the file");
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
      text_.fail(p, fmt::format("expected '{}' or the end of the line behind a quoted value, found '{}'",
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
