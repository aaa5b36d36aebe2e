#include "data/readers/csv_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/input_file.h"

namespace dtrain {

namespace {

/// A file's lines, without their ends.
class Lines {
 public:
  explicit Lines(const std::string& path) : stream_(path), buffer_(size_t{1} << 18, '\0') {}

  /// False at the end. The line is valid until the next call.
  bool next(std::string_view& line) {
    partial_.clear();
    for (;;) {
      const std::string_view rest(buffer_.data() + at_, end_ - at_);
      if (const size_t stop = rest.find('\n'); stop != std::string_view::npos) {
        at_ += stop + 1;
        line = joined(rest.substr(0, stop));
        break;
      }
      partial_ += rest;
      at_ = 0;
      end_ = stream_.read(buffer_.data(), buffer_.size());
      if (end_ > 0) continue;
      if (partial_.empty()) return false;
      line = partial_;
      break;
    }
    if (number_++ == 0 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // a byte order mark
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }
  int64_t number() const { return number_; }
  const std::string& path() const { return stream_.path(); }

 private:
  std::string_view joined(std::string_view tail) {
    if (partial_.empty()) return tail;
    partial_ += tail;
    return partial_;
  }

  InputStream stream_;
  std::string buffer_, partial_;
  size_t at_ = 0, end_ = 0;
  int64_t number_ = 0;
};

std::string_view trimmed(std::string_view text) {
  const auto strip = [&](std::string_view set) {
    text.remove_prefix(std::min(text.find_first_not_of(set), text.size()));
    text.remove_suffix(text.size() - (text.find_last_not_of(set) + 1));
  };
  strip(" \t");
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

void split(std::string_view line, char delimiter, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const size_t stop = line.find(delimiter);
    fields.push_back(trimmed(line.substr(0, stop)));
    if (stop == std::string_view::npos) return;
    line.remove_prefix(stop + 1);
  }
}

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Neither a number nor one of the ways to say that there is none.
bool is_name(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kGaps = {"", "na", "n/a", "null", "none", "-", "?"};
  std::string lower(text.substr(0, 16));
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  double value = 0;  // nan and inf are numbers here
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = error != std::errc::invalid_argument && end == text.data() + text.size();
  return !number && std::find(kGaps.begin(), kGaps.end(), lower) == kGaps.end();
}

/// What the format says, or else what the line looks like: a number where a header would have a name makes it
/// data, and so an error where it is neither.
bool is_header(const CsvFormat& format, const std::vector<std::string_view>& fields) {
  if (format.header) return *format.header;
  const auto is_number = [](std::string_view field) { return number_in(field).has_value(); };
  return std::any_of(fields.begin(), fields.end(), is_name) &&
         std::none_of(fields.begin(), fields.end(), is_number);
}

std::vector<std::string> names_in(const Lines& lines, std::string_view line,
                                  const std::vector<std::string_view>& fields) {
  std::vector<std::string> names(fields.begin(), fields.end());
  std::unordered_set<std::string_view> met;
  for (const std::string_view field : fields)
    if (!met.insert(field).second)
      throw UserError(
          fmt::format("{}:{}:{}: expected each column to have a name of its own, found '{}' again",
                      lines.path(), lines.number(), field.data() - line.data() + 1, field.substr(0, 40)));
  return names;
}

/// The values of one part so far, as the bits of its type.
struct Gathered {
  CsvPart part;
  std::vector<uint32_t> words;
};

/// Both types that csv values become are of four bytes.
std::optional<uint32_t> word_of(std::string_view text, DType dtype) {
  const auto value = number_in(text);
  if (!value) return std::nullopt;
  if (dtype == DType::float32) {
    const auto single = static_cast<float>(*value);
    return std::isfinite(single) ? std::optional(std::bit_cast<uint32_t>(single)) : std::nullopt;
  }
  using Limits = std::numeric_limits<int32_t>;
  if (*value != std::floor(*value) || *value < Limits::min() || *value > Limits::max()) return std::nullopt;
  return std::bit_cast<uint32_t>(static_cast<int32_t>(*value));
}

class Table {
 public:
  Table(const std::string& path, const CsvFormat& format, const ChooseParts& choose)
      : lines_(path), format_(format), choose_(choose) {}

  Columns read() {
    std::string_view line;
    std::vector<std::string_view> fields;
    while (lines_.next(line)) {
      if (trimmed(line).empty()) continue;
      split(line, format_.delimiter, fields);
      if (width_ == 0 && begin(line, fields)) continue;
      add(line, fields);
    }
    if (rows_ == 0) throw UserError(fmt::format("{}: expected rows of numbers, found none", lines_.path()));
    Columns columns;
    for (Gathered& gathered : gathered_) columns.push_back(finished(gathered));
    return columns;
  }

 private:
  /// Looks at the first line; true if it is a header.
  bool begin(std::string_view line, const std::vector<std::string_view>& fields) {
    width_ = fields.size();
    first_line_ = lines_.number();
    const bool header = is_header(format_, fields);
    const auto names = header ? names_in(lines_, line, fields) : std::vector<std::string>();
    for (CsvPart& part : choose_(width_, names)) gathered_.push_back({std::move(part), {}});
    return header;
  }

  void add(std::string_view line, const std::vector<std::string_view>& fields) {
    if (fields.size() != width_)
      throw UserError(fmt::format("{}:{}: expected {} values as in the first line, found {}", lines_.path(),
                                  lines_.number(), width_, fields.size()));
    for (Gathered& gathered : gathered_) {
      for (const size_t index : gathered.part.fields) {
        const auto word = word_of(fields[index], gathered.part.dtype);
        if (!word) refuse(line, fields[index], gathered.part.dtype);
        gathered.words.push_back(*word);
      }
    }
    ++rows_;
  }

  [[noreturn]] void refuse(std::string_view line, std::string_view field, DType dtype) const {
    throw UserError(fmt::format(
        "{}:{}:{}: expected {}, found '{}'{}", lines_.path(), lines_.number(), field.data() - line.data() + 1,
        dtype == DType::int32 ? "an integer (int32)" : "a finite number", field.substr(0, 40),
        lines_.number() == first_line_ && is_name(field) ? "; if the first line is a header, say so (header)"
                                                         : ""));
  }

  std::shared_ptr<const Column> finished(Gathered& gathered) const {
    const CsvPart& part = gathered.part;
    TensorSpec spec{lines_.path(), part.scalar ? Shape{} : Shape{static_cast<int64_t>(part.fields.size())},
                    part.dtype};
    const auto words = std::make_shared<const std::vector<uint32_t>>(std::move(gathered.words));
    return std::make_shared<MemoryColumn>(
        std::move(spec), rows_,
        std::shared_ptr<const std::byte>(words, reinterpret_cast<const std::byte*>(words->data())));
  }

  Lines lines_;
  CsvFormat format_;
  const ChooseParts& choose_;
  size_t width_ = 0;
  int64_t rows_ = 0, first_line_ = 0;
  std::vector<Gathered> gathered_;
};

}  // namespace

std::vector<std::string> read_csv_names(const std::string& path, const CsvFormat& format) {
  Lines lines(path);
  std::string_view line;
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    std::vector<std::string_view> fields;
    split(line, format.delimiter, fields);
    if (!is_header(format, fields)) break;
    return names_in(lines, line, fields);
  }
  return {};
}

size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  constexpr size_t kMost = 20;
  const std::vector<std::string> some(names.begin(),
                                      names.begin() + static_cast<ptrdiff_t>(std::min(kMost, names.size())));
  throw UserError(fmt::format("{}: expected a column named '{}', found the columns {}{}", path, name,
                              fmt::join(some, ", "), names.size() > kMost ? ", ..." : ""));
}

Columns read_csv(const std::string& path, const CsvFormat& format, const ChooseParts& choose) {
  return Table(path, format, choose).read();
}

}  // namespace dtrain
