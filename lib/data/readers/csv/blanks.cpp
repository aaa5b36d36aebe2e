#include "data/readers/csv/blanks.h"

#include <algorithm>

namespace dtrain {

namespace {

/// Implements make_plain(). Converts a text from its beginning to its end, because all text before a position
/// decides whether the position is inside quotes.
class PlainWriter {
 public:
  PlainWriter(std::span<char> text, char delimiter, bool blanks_delimit, std::optional<char> comment)
      : end_(text.data() + text.size()),
        delimiter_(delimiter),
        blanks_delimit_(blanks_delimit),
        comment_(comment) {}

  void run(char* p) {
    while (p < end_) {
      if (*p == '\n') {
        starts_ = true;
        has_value_ = false;
        ++p;
      } else if (comment_ && *p == *comment_) {
        char* const stop = std::find(p, end_, '\n');
        std::fill(p, stop, has_value_ ? ' ' : kCommentMark);
        p = stop;
      } else if (*p == '"' && starts_) {
        p = behind_quote(p + 1);
        set_in_value();
      } else if (is_space_here(*p)) {
        p = blanks_delimit_ ? write_blanks(p) : p + 1;
      } else {
        set_in_value();
        starts_ = *p == delimiter_;
        ++p;
      }
    }
  }

 private:
  bool is_space_here(char c) const {
    return c == ' ' || (c == '\t' && (blanks_delimit_ || c != delimiter_)) || (c == '\r' && blanks_delimit_);
  }
  void set_in_value() {
    starts_ = false;
    has_value_ = true;
  }
  /// Returns the position after the closing quote of the value at `p`. A quote within the value is doubled.
  char* behind_quote(char* p) const {
    for (p = std::find(p, end_, '"'); end_ - p >= 2 && p[1] == '"';) p = std::find(p + 2, end_, '"');
    return p == end_ ? p : p + 1;
  }
  char* write_blanks(char* p) {
    char* const stop = std::find_if_not(p, end_, [&](char c) { return is_space_here(c); });
    const bool is_last = stop == end_ || *stop == '\n' || (comment_ && *stop == *comment_);
    std::fill(p, stop, ' ');
    if (has_value_ && !is_last) *p = '\t';
    starts_ = true;
    return stop;
  }

  char* const end_;
  const char delimiter_;
  const bool blanks_delimit_;
  const std::optional<char> comment_;
  bool starts_ = true;  // true if a value may start at this position, so that a quote opens a quoted value
  bool has_value_ = false;  // true if the line has a value before this position
};

}  // namespace

void make_plain(std::span<char> text, char delimiter, bool blanks_delimit, std::optional<char> comment) {
  PlainWriter(text, delimiter, blanks_delimit, comment).run(text.data());
}

}  // namespace dtrain
