#include "data/readers/csv_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/name_list.h"
#include "config/diagnostics.h"
#include "data/parallel.h"
#include "data/readers/csv_categories.h"
#include "data/readers/csv_destination.h"
#include "data/readers/csv_text.h"
#include "data/readers/csv_values.h"
#include "data/readers/decimal.h"

namespace dtrain {

namespace {

bool is_csv_number(const std::string& text) {
  return csv_number(text).has_value();
}

/// What the format says, or else what the line looks like: a number where a header would have a name makes it
/// data, and so an error where it is neither.
bool is_header(const CsvFormat& format, const std::vector<std::string>& fields) {
  if (format.header) return *format.header;
  return std::any_of(fields.begin(), fields.end(), is_csv_name) &&
         std::none_of(fields.begin(), fields.end(), is_csv_number);
}

constexpr size_t kMostNames = 20;  // in a message

/// Whether a field that holds these values is one of categories.
bool has_table(CsvCategory::When when, const std::vector<std::string>& values) {
  if (when == CsvCategory::When::always) return true;
  return std::any_of(values.begin(), values.end(), is_csv_name) &&
         (when == CsvCategory::When::some_are_names ||
          std::none_of(values.begin(), values.end(), is_csv_number));
}

/// Memory that a column is made in.
struct Making {
  TensorSpec spec;
  std::shared_ptr<std::byte> data;
};

/// Thrown where a field that was taken for numbers has something else, which may make it one of texts.
struct TextAmongNumbers {
  size_t field = 0;
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
  CsvColumns read_unchecked(const PlanCsv& plan) {
    const char* rows = begin();
    if (rows == text_.end())
      throw UserError(fmt::format("{}: expected rows of numbers, found none", text_.path()));
    plan_ = plan(start_);
    set_numbers_aside();
    blocks_ = text_.blocks(rows);
    rows_ = blocks_.back().first_row + blocks_.back().rows;
    for (;;) {
      try {
        return read_rows();
      } catch (const TextAmongNumbers& found) {
        plan_.categories.insert(doubtful_.extract(found.field));
      }
    }
  }

  /// What is to be categories only if it holds names is numbers as long as nothing else is met: that takes no
  /// pass over the file.
  void set_numbers_aside() {
    for (auto one = plan_.categories.begin(); one != plan_.categories.end();) {
      const auto next = std::next(one);
      const std::string& first = start_.first[one->first];
      if (one->second.when != CsvCategory::When::always && !is_csv_name(first)) {
        const bool is_number = one->second.when == CsvCategory::When::all_are_names && is_csv_number(first);
        auto taken = plan_.categories.extract(one);
        if (!is_number) doubtful_.insert(std::move(taken));
      }
      one = next;
    }
  }

  CsvColumns read_rows() {
    tables_.clear();
    destinations_.clear();
    losses_.clear();
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
    if (widen_parts()) return read_rows();
    for (Making& part : parts) columns.parts.push_back(finished(part));
    if (weights) columns.weights = finished(*weights);
    if (names) columns.names = finished(*names);
    for (const auto& [field, table] : tables_) columns.categories[field] = table.values();
    return columns;
  }

  /// Makes float64 of the parts that lose digits as float32. Returns whether there are any.
  bool widen_parts() {
    bool any = false;
    for (CsvPart& part : plan_.parts) {
      const bool loses = part.dtype == DType::float32 &&
                         std::any_of(part.fields.begin(), part.fields.end(), [&](const CsvElement& element) {
                           const auto loss = losses_.find(element.field);
                           return loss != losses_.end() && loss->second.is_noticeable();
                         });
      if (loses) part.dtype = DType::float64;
      any = any || loses;
    }
    return any;
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

  /// Before the columns are made, whose width depends on them: the tables of categories, and the length of
  /// the longest id.
  void make_tables() {
    std::set<size_t> unknown;
    for (const auto& [field, category] : plan_.categories)
      if (!category.values) unknown.insert(field);
    CsvTexts texts;
    if (!unknown.empty() || plan_.id) texts = collect_csv_texts(text_, blocks_, width(), unknown, plan_.id);
    longest_id_ = texts.longest;
    for (const auto& [field, category] : plan_.categories) {
      const std::vector<std::string>& values = category.values ? *category.values : texts.values.at(field);
      if (has_table(category.when, values)) tables_.try_emplace(field, values, category.other);
    }
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
    const size_t stride = bytes_of(part.dtype) * elements;
    making.data = allocate_rows(stride);
    size_t at = 0;
    for (const CsvElement& element : part.fields) {
      using Kind = CsvDestination::Kind;
      const auto table = tables_.find(element.field);
      const bool integers = part.dtype == DType::int32;
      CsvDestination to{.kind = integers ? Kind::int32 : Kind::real,
                        .dtype = part.dtype,
                        .base = making.data.get() + bytes_of(part.dtype) * at,
                        .stride = stride,
                        .gap = element.gap,
                        .advice_for_gap = part.advice_for_gap};
      if (table != tables_.end()) {
        to.table = &table->second;
        if (!part.scalar)
          to.advice_for_gap = to.advice_for_unknown = "'unknown: other' takes such values, too";
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
    destinations_.emplace(field, CsvDestination{.kind = kind,
                                                .base = making.data.get(),
                                                .stride = bytes,
                                                .width = bytes,
                                                .advice_for_gap = "each row must have one"});
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
    std::map<size_t, DigitLoss> losses;
    for (const auto& [field, to] : destinations_) {
      destinations[field].push_back(to);
      if (to.kind == CsvDestination::Kind::real && to.dtype == DType::float32)
        destinations[field].back().loss = &losses[field];
    }
    CsvFields fields(text_);
    CsvField field;
    auto row = static_cast<size_t>(block.first_row);
    const size_t end = row + static_cast<size_t>(block.rows);
    for (const char* p = text_.skip_blank(block.begin); p < block.end; p = text_.skip_blank(p), ++row) {
      const char* const line = p;
      if (row == end) fail_changed();
      for (size_t i = 0; i < width(); ++i) {
        const auto& of_field = destinations[i];
        const bool last = i + 1 == width();
        if (of_field.size() == 1 && of_field[0].kind == CsvDestination::Kind::real)
          if (const char* next = read_number(p, last, of_field[0], row)) {
            p = next;
            continue;
          }
        p = fields.read(p, field);
        if (field.last != last) refuse_width(line);
        for (const CsvDestination& to : of_field)
          if (!to.store(field.text, row)) refuse(line, field, i, to);
      }
    }
    if (row != end) fail_changed();
    const std::lock_guard lock(losses_mutex_);
    for (const auto& [i, loss] : losses) losses_[i].add(loss);
  }

  /// The rows were counted before; memory is for so many, and holds nothing where there are fewer.
  [[noreturn]] void fail_changed() const {
    throw Error(text_.path() + ": the file was changed while it was in use");
  }

  /// Stores the value at `p` where it is a plain number, and returns what is behind it; null for anything
  /// else.
  const char* read_number(const char* p, bool last, const CsvDestination& to, size_t row) const {
    double value = 0;
    p = read_decimal(p, text_.end(), value);
    if (!p) return nullptr;
    if (p < text_.end() && last && *p == '\r') ++p;
    if (p < text_.end() && *p != (last ? '\n' : text_.delimiter())) return nullptr;
    if (p == text_.end() && !last) return nullptr;
    if (!to.store_number(value, row)) return nullptr;
    return p == text_.end() ? p : p + 1;
  }

  [[noreturn]] void refuse_width(const char* line) const {
    text_.fail_line(line, fmt::format("expected {} values as in the first line, found {}", width(),
                                      CsvFields(text_).count(line)));
  }

  [[noreturn]] void refuse(const char* line, const CsvField& field, size_t index,
                           const CsvDestination& to) const {
    if (CsvFields(text_).count(line) != width()) refuse_width(line);
    if (doubtful_.contains(index)) throw TextAmongNumbers{index};
    const std::string_view found = field.text.substr(0, 40);
    const bool missing_name = to.table && is_csv_missing_name(field.text);
    const std::string expected = (missing_name ? "a value" : to.expected()) + called(index);
    if (to.table && !missing_name)
      text_.fail(field.at, fmt::format("expected {} ({}), found '{}'{}", expected,
                                       list_some(to.table->values(), kMostNames), found,
                                       behind(to.advice_for_unknown)));
    text_.fail(field.at,
               fmt::format("expected {}, found '{}'{}", expected, found, advice(line, field.text, to)));
  }

  static std::string behind(std::string_view advice) {
    return advice.empty() ? "" : fmt::format("; {}", advice);
  }
  std::string advice(const char* line, std::string_view found, const CsvDestination& to) const {
    if (line == first_ && start_.names.empty() && is_csv_name(found))
      return "; if the first line is a header, say so (header)";
    if (to.table || is_csv_gap(found)) return behind(to.advice_for_gap);
    if (is_csv_date(found))
      return "; a date is no number: make columns of it (year, month, days since a day), or leave it out "
             "('drop')";
    return is_csv_name(found) && !plan_.advice.empty() ? "; " + plan_.advice : "";
  }

  CsvText text_;
  CsvFormat format_;
  CsvFields fields_;
  CsvStart start_;
  CsvPlan plan_;
  const char* first_ = nullptr;             // where the first line begins
  std::map<size_t, CsvCategory> doubtful_;  // as CsvPlan::categories: those that are read as numbers so far
  std::vector<CsvBlock> blocks_;
  int64_t rows_ = 0;
  size_t longest_id_ = 1;
  std::map<size_t, CategoryTable> tables_;  // by field
  std::multimap<size_t, CsvDestination> destinations_;
  std::mutex losses_mutex_;
  std::map<size_t, DigitLoss> losses_;  // by field
};

}  // namespace

size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  // All names in one field are those of a file whose fields something else separates.
  const bool is_one = names.size() == 1 && names[0].find_first_of(";\t|,") != std::string::npos;
  throw UserError(
      fmt::format("{}: expected a column named '{}', found the column{} {}{}", path, name,
                  names.size() == 1 ? "" : "s", list_some(names, kMostNames),
                  is_one ? "; 'delimiter' says what separates columns" : suggestion(name, names)));
}

CsvColumns read_csv(const std::string& path, const CsvFormat& format, const PlanCsv& plan) {
  return Table(path, format).read(plan);
}

}  // namespace dtrain
