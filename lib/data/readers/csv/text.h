// Delimited text in memory (RFC 4180), which is divided into blocks of whole rows and read field by field.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/mapped_file.h"

namespace dtrain {

/// Throws UserError if a file with this beginning is Parquet; the message says how to convert it.
void reject_parquet(const std::string& path, std::string_view start);
/// Throws UserError if a file with this beginning is text in UTF-16; the message says how to convert it.
void reject_utf16(const std::string& path, std::string_view start);

/// Consecutive rows of a text. Blank lines are rows only after keep_blank_lines(); otherwise they are
/// skipped.
struct CsvBlock {
  const char *begin = nullptr, *end = nullptr;
  int64_t first_row = 0, rows = 0;     // index of the first row, and number of rows
  std::vector<int64_t> left_out = {};  // indices of rows in the block, ascending

  int64_t kept() const { return rows - static_cast<int64_t>(left_out.size()); }
};

/// Delimiter of a file whose values are separated by any number of spaces and tabs.
inline constexpr char kBlanksDelimit = '\0';

/// A whole file in memory: mapped, or decompressed if it is gzip. Any thread may read it. If the file has
/// comments, or runs of blanks between values, the memory holds a copy that was converted to plain delimited
/// text (blanks.h).
class CsvText {
 public:
  /// `comment` is the first character of comments, which are skipped up to the end of the line.
  CsvText(const std::string& path, char delimiter, std::optional<char> comment = {});

  const std::string& path() const { return path_; }
  char delimiter() const { return delimiter_; }
  /// Returns the beginning of the text, after a byte order mark if there is one.
  const char* begin() const { return begin_; }
  const char* end() const { return end_; }
  /// Throws Error if the file has changed.
  void check() const;

  /// Returns the start of the line after the one at `p`. A row with quoted line ends has several lines.
  const char* next_line(const char* p) const;
  /// Returns the beginning of the first row at or after `p`, or end() if only blank lines follow.
  const char* skip_blank(const char* p) const;
  /// Makes each blank line a row with a missing value. Used for tables with one column. Three kinds of blank
  /// lines are still skipped: those before the header, those at the end of the file and, if the file has no
  /// header but begins with a comment, those before the first row. Returns the first row, not counting the
  /// header.
  const char* keep_blank_lines(bool has_header);
  /// Returns whether the row at `p` is a blank line.
  bool is_blank_row(const char* p) const { return is_blank(p, next_line(p)); }
  /// Divides the rows from `from`, the beginning of a row, into blocks.
  std::vector<CsvBlock> blocks(const char* from) const;

  /// Throws UserError with the text "path:line:column: message". fail_line() omits the column.
  [[noreturn]] void fail(const char* at, const std::string& message) const;
  [[noreturn]] void fail_line(const char* at, const std::string& message) const;
  /// Returns the position of a field in row `row` (from 0, header included); end() if there is no such row.
  const char* find(int64_t row, size_t field) const;
  int64_t line_of(const char* at) const;

 private:
  /// Returns true if `c` counts as blank, that is, if it may occur in a blank line. A tab does not count as
  /// blank if it is the delimiter, because a line that has only delimiters is a row whose values are all
  /// missing.
  bool is_blank(char c) const;
  bool is_blank(const char* p, const char* line_end) const;
  /// Returns whether the blank line at `p` is a row.
  bool is_kept(const char* p, const char* line_end) const;
  /// Returns the rows that begin in [begin, limit); a row must begin at `begin`. If a quoted value of the
  /// last row does not end before `end`, the row ends at `end`.
  CsvBlock block_at(const char* begin, const char* limit, const char* end) const;
  /// Returns the start of the line after the row at `p`. If a quoted value does not end before `end`, returns
  /// `end`.
  const char* next_row(const char* p, const char* end) const;

  std::string path_;
  char delimiter_;
  std::unique_ptr<MappedFile> mapped_;
  std::string unpacked_;
  const char *begin_ = nullptr, *end_ = nullptr;
  // The range of the text in which blank lines are rows. Null if blank lines are never rows.
  const char *kept_begin_ = nullptr, *kept_end_ = nullptr;
};

/// One value of a row, without surrounding blanks and quotes. The text is valid until the next value is read.
struct CsvField {
  std::string_view text;
  const char* at = nullptr;  // position in the file
  bool last = false;         // last field of its row
};

/// Reads fields one by one. Used by one thread.
class CsvFields {
 public:
  explicit CsvFields(const CsvText& text) : text_(text) {}
  /// Reads the field at `p` and returns the beginning of the next field or row. Throws UserError for an
  /// opening quote without a closing quote, and for text after a closing quote.
  const char* read(const char* p, CsvField& field);
  /// Returns the number of fields in the row at `p`.
  size_t count(const char* p);

 private:
  const char* read_quoted(const char* p, CsvField& field);
  const char* finish(const char* p, CsvField& field) const;

  const CsvText& text_;
  std::string unescaped_;
};

}  // namespace dtrain
