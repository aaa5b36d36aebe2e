#include "data/readers/csv_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/name_list.h"
#include "data/parallel.h"
#include "data/readers/csv_destination.h"
#include "data/readers/csv_text.h"
#include "data/readers/csv_values.h"
#include "data/readers/decimal.h"

namespace dtrain {

namespace {

/// What the format says, or else what the line looks like: a number where a header would have a name makes it
/// data, and so an error where it is neither.
bool is_header(const CsvFormat& format, const std::vector<std::string>& fields) {
  if (format.header) return *format.header;
  return std::any_of(fields.begin(), fields.end(), is_csv_name) &&
         std::none_of(fields.begin(), fields.end(), is_csv_number);
}

constexpr size_t kMostNames = 20;  // in a message

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TextSet = std::unordered_set<std::string, TextHash, std::equal_to<>>;

std::vector<std::string> sorted(const TextSet& texts) {
  std::vector<std::string> all(texts.begin(), texts.end());
  std::sort(all.begin(), all.end());
  if (std::all_of(all.begin(), all.end(), is_csv_number))
    std::stable_sort(all.begin(), all.end(), [](const std::string& a, const std::string& b) {
      return *csv_number(a) < *csv_number(b);
    });
  return all;
}

/// Memory that a column is made in.
struct Making {
  TensorSpec spec;
  std::shared_ptr<std::byte> data;
};

class Table {
 public:
  Table(const std::string& path, const CsvFormat& format)
      : text_(path, format.delimiter), format_(format), fields_(text_) {}

  CsvColumns read(const PlanCsv& plan) {
    try {
      return read_unchecked(plan);
    } catch (const Error&) {
      text_.check();
      throw;
    }
  }

 private:
  using Values = std::map<size_t, TextSet>;

  CsvColumns read_unchecked(const PlanCsv& plan) {
    const char* rows = begin();
    if (rows == text_.end())
      throw UserError(fmt::format("{}: expected rows of numbers, found none", text_.path()));
    plan_ = plan(start_);
    blocks_ = text_.blocks(rows);
    rows_ = blocks_.back().first_row + blocks_.back().rows;
    make_tables();
    CsvColumns columns;
    std::vector<Making> parts;
    for (const CsvPart& part : plan_.parts) parts.push_back(make_part(part));
    std::optional<Making> weights, names;
    if (plan_.weight)
      weights = make(*plan_.weight, {"weight", {}, DType::float32}, CsvDestination::Kind::weight);
    if (plan_.id) {
      const std::string title = start_.names.empty() ? "id" : start_.names[*plan_.id];
      names = make(*plan_.id, {title, Shape{static_cast<int64_t>(longest_id_)}, DType::uint8},
                   CsvDestination::Kind::text);
    }
    run_blocks(static_cast<int64_t>(blocks_.size()),
               [&](int64_t i) { fill(blocks_[static_cast<size_t>(i)]); });
    text_.check();
    for (Making& part : parts) columns.parts.push_back(finished(part));
    if (weights) columns.weights = finished(*weights);
    if (names) columns.names = finished(*names);
    for (const auto& [field, table] : tables_) columns.categories[field] = table.values();
    return columns;
  }

  /// Looks at the first line, and the first row; returns where that begins.
  const char* begin() {
    const char* p = text_.skip_blank(text_.begin());
    start_.path = text_.path();
    if (p == text_.end()) return p;
    first_ = p;
    const char* behind = p;
    std::vector<std::string> fields = read_row(behind);
    if (!is_header(format_, fields)) {
      start_.first = std::move(fields);
      return p;
    }
    check_names(p);
    start_.names = std::move(fields);
    p = behind = text_.skip_blank(behind);
    if (p == text_.end()) return p;
    start_.first = read_row(behind);
    if (start_.first.size() != start_.names.size())
      text_.fail_line(p, fmt::format("expected {} values as in the first line, found {}", start_.names.size(),
                                     start_.first.size()));
    return p;
  }

  std::vector<std::string> read_row(const char*& p) {
    std::vector<std::string> all;
    CsvField field;
    do {
      p = fields_.read(p, field);
      all.emplace_back(field.text);
    } while (!field.last);
    return all;
  }

  void check_names(const char* p) {
    std::unordered_set<std::string> met;
    CsvField field;
    do {
      p = fields_.read(p, field);
      if (!met.emplace(field.text).second)
        text_.fail(field.at, fmt::format("expected each column to have a name of its own, found '{}' again",
                                         field.text.substr(0, 40)));
    } while (!field.last);
  }

  size_t width() const { return start_.width(); }
  std::string called(size_t field) const {
    return start_.names.empty() ? "" : fmt::format(" in the column '{}'", start_.names[field]);
  }

  /// Before the columns are made, whose width depends on them: all values of the fields whose tables are not
  /// known, and the length of the longest id.
  void make_tables() {
    Values all;
    for (const auto& [field, category] : plan_.categories)
      if (!category.values) all[field];
    if (!all.empty() || plan_.id) {
      std::mutex mutex;
      run_blocks(static_cast<int64_t>(blocks_.size()), [&](int64_t i) {
        Values found;
        for (const auto& [field, texts] : all) found[field];
        const size_t longest = collect(blocks_[static_cast<size_t>(i)], found);
        const std::lock_guard lock(mutex);
        longest_id_ = std::max(longest_id_, longest);
        for (auto& [field, texts] : found) all[field].merge(texts);
      });
    }
    for (const auto& [field, category] : plan_.categories)
      tables_.try_emplace(field, category.values ? *category.values : sorted(all[field]), category.other);
  }

  size_t collect(const CsvBlock& block, Values& found) const {
    size_t longest = 1, last = plan_.id.value_or(0);
    if (!found.empty()) last = std::max(last, found.rbegin()->first);
    CsvFields fields(text_);
    CsvField field;
    for (const char* p = text_.skip_blank(block.begin); p < block.end; p = text_.skip_blank(p)) {
      field.last = false;
      for (size_t i = 0; i < width() && !field.last; ++i) {
        p = fields.read(p, field);
        if (i > last) continue;
        if (plan_.id == i) longest = std::max(longest, field.text.size());
        if (is_csv_missing_name(field.text)) continue;
        if (const auto values = found.find(i); values != found.end() && !values->second.contains(field.text))
          values->second.emplace(field.text);
      }
      while (!field.last) p = fields.read(p, field);  // too many are an error later
    }
    return longest;
  }

  /// The elements that a field of a part becomes.
  size_t elements_of(const CsvPart& part, const CsvElement& element) const {
    const auto table = tables_.find(element.field);
    return table == tables_.end() || part.scalar || part.dtype == DType::int32
               ? 1
               : table->second.values().size();
  }

  Making make_part(const CsvPart& part) {
    size_t elements = 0;
    for (const CsvElement& element : part.fields) elements += elements_of(part, element);
    Making making{{text_.path(), part.scalar ? Shape{} : Shape{static_cast<int64_t>(elements)}, part.dtype},
                  nullptr};
    const size_t stride = 4 * elements;  // both types are of four bytes
    making.data = allocate_rows(stride);
    size_t at = 0;
    for (const CsvElement& element : part.fields) {
      using Kind = CsvDestination::Kind;
      const auto table = tables_.find(element.field);
      const bool integers = part.dtype == DType::int32;
      CsvDestination to{.kind = integers ? Kind::int32 : Kind::float32,
                        .base = making.data.get() + 4 * at,
                        .stride = stride,
                        .gap = element.gap};
      if (table != tables_.end()) {
        to.table = &table->second;
        to.kind = integers ? Kind::index32 : part.scalar ? Kind::index_float32 : Kind::features;
      }
      destinations_.emplace(element.field, to);
      at += elements_of(part, element);
    }
    return making;
  }

  Making make(size_t field, TensorSpec spec, CsvDestination::Kind kind) {
    const size_t bytes = static_cast<size_t>(spec.shape.elements()) * bytes_of(spec.dtype);
    Making making{std::move(spec), allocate_rows(bytes)};
    destinations_.emplace(
        field, CsvDestination{.kind = kind, .base = making.data.get(), .stride = bytes, .width = bytes});
    return making;
  }

  std::shared_ptr<std::byte> allocate_rows(size_t bytes) const {
    size_t all = 0;
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(rows_), &all)) throw std::bad_alloc();
    return allocate_bytes(all);
  }

  std::shared_ptr<const Column> finished(Making& making) const {
    return std::make_shared<MemoryColumn>(std::move(making.spec), rows_, making.data);
  }

  void fill(const CsvBlock& block) {
    std::vector<std::vector<CsvDestination>> destinations(width());
    for (const auto& [field, to] : destinations_) destinations[field].push_back(to);
    CsvFields fields(text_);
    CsvField field;
    auto row = static_cast<size_t>(block.first_row);
    for (const char* p = text_.skip_blank(block.begin); p < block.end; p = text_.skip_blank(p), ++row) {
      const char* const line = p;
      for (size_t i = 0; i < width(); ++i) {
        const auto& of_field = destinations[i];
        const bool last = i + 1 == width();
        if (of_field.size() == 1 && of_field[0].kind == CsvDestination::Kind::float32)
          if (const char* next = read_float(p, last, of_field[0].base + row * of_field[0].stride)) {
            p = next;
            continue;
          }
        p = fields.read(p, field);
        if (field.last != last) refuse_width(line);
        for (const CsvDestination& to : of_field)
          if (!to.store(field.text, row)) refuse(line, field, i, to);
      }
    }
  }

  /// The value at `p` where it is a plain number; null for anything else.
  const char* read_float(const char* p, bool last, std::byte* dst) const {
    double value = 0;
    p = read_decimal(p, text_.end(), value);
    if (!p) return nullptr;
    if (p < text_.end() && last && *p == '\r') ++p;
    if (p < text_.end() && *p != (last ? '\n' : text_.delimiter())) return nullptr;
    if (p == text_.end() && !last) return nullptr;
    const auto single = static_cast<float>(value);
    if (!std::isfinite(single)) return nullptr;
    std::memcpy(dst, &single, sizeof single);
    return p == text_.end() ? p : p + 1;
  }

  [[noreturn]] void refuse_width(const char* line) const {
    text_.fail_line(line, fmt::format("expected {} values as in the first line, found {}", width(),
                                      CsvFields(text_).count(line)));
  }

  [[noreturn]] void refuse(const char* line, const CsvField& field, size_t index,
                           const CsvDestination& to) const {
    if (CsvFields(text_).count(line) != width()) refuse_width(line);
    const std::string_view found = field.text.substr(0, 40);
    const std::string expected = to.expected() + called(index);
    if (to.table)
      text_.fail(field.at, fmt::format("expected {} ({}), found '{}'", expected,
                                       list_some(to.table->values(), kMostNames), found));
    text_.fail(field.at, fmt::format("expected {}, found '{}'{}", expected, found, advice(line, field.text)));
  }

  std::string advice(const char* line, std::string_view found) const {
    if (line == first_ && start_.names.empty() && is_csv_name(found))
      return "; if the first line is a header, say so (header)";
    if (plan_.advice.empty()) return "";
    if (is_csv_gap(found)) return "; a gap becomes what 'fill' says: mean, median or a number";
    if (is_csv_date(found))
      return "; a date is no number: make columns of it (year, month, days since a day), or leave it out "
             "('drop')";
    return is_csv_name(found) ? "; " + plan_.advice : "";
  }

  CsvText text_;
  CsvFormat format_;
  CsvFields fields_;
  CsvStart start_;
  CsvPlan plan_;
  const char* first_ = nullptr;  // where the first line begins
  std::vector<CsvBlock> blocks_;
  int64_t rows_ = 0;
  size_t longest_id_ = 1;
  std::map<size_t, CategoryTable> tables_;  // by field
  std::multimap<size_t, CsvDestination> destinations_;
};

}  // namespace

bool is_csv_number(std::string_view text) {
  return csv_number(text).has_value();
}

size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  throw UserError(fmt::format("{}: expected a column named '{}', found the columns {}", path, name,
                              list_some(names, kMostNames)));
}

CsvColumns read_csv(const std::string& path, const CsvFormat& format, const PlanCsv& plan) {
  return Table(path, format).read(plan);
}

}  // namespace dtrain
