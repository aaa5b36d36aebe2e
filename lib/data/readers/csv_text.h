// Delimited text in memory, in blocks of whole rows, and its fields (RFC 4180).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/mapped_file.h"

namespace dtrain {

/// Throws UserError where a file that begins so is Parquet, and says how to convert it.
void refuse_parquet(const std::string& path, std::string_view start);

/// Rows that follow one another. Blank lines among them are no rows.
struct CsvBlock {
  const char *begin = nullptr, *end = nullptr;
  int64_t first_row = 0, rows = 0;     // counted from where the rows begin
  std::vector<int64_t> left_out = {};  // of the block's rows, counted from 0; in order

  int64_t kept() const { return rows - static_cast<int64_t>(left_out.size()); }
};

/// Stands for the delimiter of a file whose values are separated by any number of blanks and tabs.
inline constexpr char kBlanksDelimit = '\0';

/// A whole file: mapped into memory, or unpacked there where it is gzip. Any thread may read it. Files with
/// comments or runs of blanks are copied into memory as plain delimited text (csv_blanks.h).
class CsvText {
 public:
  /// `comment`: begins the rest of a line that is passed over.
  CsvText(const std::string& path, char delimiter, std::optional<char> comment = {});

  const std::string& path() const { return path_; }
  char delimiter() const { return delimiter_; }
  /// Behind the byte order mark, if there is one.
  const char* begin() const { return begin_; }
  const char* end() const { return end_; }
  /// Throws Error where the file is not any more what it was.
  void check() const;

  /// Where the line after the one at `p` begins; a row with quoted ends of lines is several lines.
  const char* next_line(const char* p) const;
  /// The first row at `p` or after it; end() where only blank lines follow.
  const char* skip_blank(const char* p) const;
  /// The rows from `from` on, which is a row's beginning.
  std::vector<CsvBlock> blocks(const char* from) const;

  /// Throws UserError: "path:line:column: message", or without the column.
  [[noreturn]] void fail(const char* at, const std::string& message) const;
  [[noreturn]] void fail_line(const char* at, const std::string& message) const;
  /// Where a field of a row is, found by its number from the first row on; end() where there is none.
  const char* find(int64_t row, size_t field) const;
  int64_t line_of(const char* at) const;

 private:
  /// A tab that stands between values is none: a row of them alone has all of its values missing.
  bool is_blank(char c) const;
  bool is_blank(const char* p, const char* line_end) const;
  /// The rows that begin at `begin`, a row's beginning, or behind it, and before `limit`. A quote is not
  /// followed beyond `end`.
  CsvBlock block_at(const char* begin, const char* limit, const char* end) const;
  /// Where the line behind the row at `p` begins; `end` where a quote is open there.
  const char* next_row(const char* p, const char* end) const;

  std::string path_;
  char delimiter_;
  std::unique_ptr<MappedFile> mapped_;
  std::string unpacked_;
  const char *begin_ = nullptr, *end_ = nullptr;
};

/// One value of a row, without blanks around it and without its quotes. Valid until the next one is read.
struct CsvField {
  std::string_view text;
  const char* at = nullptr;  // in the file
  bool last = false;         // of its row
};

/// Reads one field after the other. Used by one thread.
class CsvFields {
 public:
  explicit CsvFields(const CsvText& text) : text_(text) {}
  /// The field at `p`; returns where the next one, or the next row, begins. Throws UserError for a quote that
  /// does not end, or has something behind it.
  const char* read(const char* p, CsvField& field);
  /// How many fields the row at `p` has.
  size_t count(const char* p);

 private:
  const char* read_quoted(const char* p, CsvField& field);
  const char* finish(const char* p, CsvField& field) const;

  const CsvText& text_;
  std::string unescaped_;
};

}  // namespace dtrain
