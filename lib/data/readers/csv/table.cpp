#include "data/readers/csv/table.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/name_list.h"
#include "base/text.h"
#include "config/diagnostics.h"
#include "data/loader/parallel.h"
#include "data/located_error.h"
#include "data/readers/csv/destination.h"
#include "data/readers/csv/filler.h"
#include "data/readers/csv/refusal.h"
#include "data/readers/csv/start.h"
#include "data/readers/csv/survey.h"
#include "data/text/make_tokenizer.h"

namespace dtrain {

namespace {

/// A column under construction.
struct Making {
  TensorSpec spec;
  std::shared_ptr<std::byte> data;
};

class CsvTable {
 public:
  CsvTable(const std::string& path, const CsvFormat& format)
      : text_(path, format.delimiter, format.comment), format_(format), values_(format.notation) {}

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
    const char* rows = nullptr;
    start_ = read_csv_start(text_, values_, format_, rows);
    if (rows == text_.end())
      throw UserError(fmt::format("{}: expected rows of values{}", text_.path(),
                                  start_.names.empty()
                                      ? ", found none"
                                      : " below the header, found none; if the first line contains data and "
                                        "is not a header, set 'header: false' (or, for a file on the command "
                                        "line, use --no-header)"));
    plan_ = plan(start_);
    set_numbers_aside();
    blocks_ = text_.blocks(rows);
    for (;;) {
      try {
        return read_rows();
      } catch (const CsvTextAmongNumbers& found) {
        plan_.categories.insert(doubtful_.extract(found.field));
      }
    }
  }

  /// Some fields of CsvPlan::categories have categories only if they hold names. If the first value of such a
  /// field is not a name, removes the field from CsvPlan::categories, so that it is read as numbers. This
  /// usually saves a pass over the file. Fields that may still turn out to have categories go to doubtful_.
  void set_numbers_aside() {
    for (auto one = plan_.categories.begin(); one != plan_.categories.end();) {
      const auto next = std::next(one);
      const std::string& first = start_.first[one->first];
      if (one->second.when != CsvCategory::When::always && !values_.is_name(first)) {
        const bool is_number = one->second.when == CsvCategory::When::all_are_names && values_.number(first);
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
    survey();
    CsvColumns columns;
    std::vector<Making> parts;
    for (const CsvPart& part : plan_.parts)
      parts.push_back(part.tokens > 0 ? make_tokens(part) : make_part(part));
    std::optional<Making> weights, names;
    if (plan_.weight)
      weights = make(*plan_.weight, {"weight", {}, DType::float32}, CsvDestination::Kind::weight);
    if (plan_.id) {
      const std::string title = start_.names.empty() ? "id" : start_.names[*plan_.id];
      names = make_text(*plan_.id, title);
    }
    std::optional<Making> series, times;
    if (plan_.series) series = make_text(*plan_.series, text_.path());
    if (plan_.time) times = make_times(*plan_.time);
    fill();
    text_.check();
    if (widen_parts()) return read_rows();
    for (Making& part : parts) columns.parts.push_back(finished(part));
    if (weights) columns.weights = finished(*weights);
    if (names) columns.names = finished(*names);
    if (series) columns.series = finished(*series);
    if (times) columns.times = finished(*times);
    for (const auto& [field, table] : tables_) columns.categories[field] = table.values();
    columns.readings = plan_.readings;
    for (const auto& [field, text] : plan_.texts) columns.tokens[field] = text.tokenizer->learned();
    for (const CsvBlock& block : blocks_) columns.left_out += static_cast<int64_t>(block.left_out.size());
    return columns;
  }

  /// Changes the type of the parts that lose digits in float32 to float64. Returns true if a part was
  /// changed.
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

  size_t width() const { return start_.width(); }

  /// Finds everything that determines the size of the columns, before they are allocated: the tables of
  /// categories, undecided facts about dates and indicators, the tokenizers, the lengths of the longest id
  /// and the longest series name, and the rows to leave out.
  void survey() {
    CsvQuestions questions;
    for (const auto& field : {plan_.id, plan_.series})
      if (field) questions.lengths.insert(*field);
    for (const auto& [field, category] : plan_.categories)
      if (!category.values) questions.texts.insert(field);
    for (const auto& [field, reading] : plan_.readings) {
      if (!reading.dates.empty() && !reading.form) questions.dates.insert(field);
      if (!reading.indicator) questions.gaps.insert(field);
    }
    for (const auto& [field, text] : plan_.texts)
      if (!text.tokenizer) questions.tokens.emplace(field, text.options);
    for (const size_t field : plan_.required) questions.required[field] = plan_.categories.contains(field);
    CsvAnswers answers;
    if (!questions.empty()) answers = survey_csv(text_, values_, width(), questions, blocks_);
    longest_ = std::move(answers.longest);
    rows_ = blocks_.back().first_row + blocks_.back().kept();
    if (rows_ == 0) throw UserError(fmt::format("{}: expected rows with a target, found none", text_.path()));
    for (auto& [field, reading] : plan_.readings) {
      if (questions.dates.contains(field)) reading.form = answers.dates.at(field).form(plan_.day_first);
      if (!reading.indicator) reading.indicator = answers.gaps.contains(field);
    }
    for (const auto& [field, counts] : answers.tokens)
      plan_.texts.at(field).tokenizer = make_tokenizer(counts.learn(text_.path()));
    for (const auto& [field, category] : plan_.categories) {
      std::vector<std::string> values = category.values ? *category.values : answers.texts.at(field);
      if (category.separator && !category.values) values = all_labels(values, *category.separator);
      if (has_table(category.when, values))
        tables_.try_emplace(field, std::move(values), category.other, category.separator);
    }
  }

  /// Returns the labels in these texts, sorted. Throws UserError if there are none.
  std::vector<std::string> all_labels(const std::vector<std::string>& texts, char separator) const {
    std::set<std::string> labels;
    for (const std::string& text : texts)
      for (const std::string_view label : labels_in(text, separator)) labels.emplace(label);
    if (labels.empty())
      throw UserError(
          fmt::format("{}: expected labels separated by '{}', found none", text_.path(), separator));
    return {labels.begin(), labels.end()};
  }

  /// Returns true if a field with these values is read as categories.
  bool has_table(CsvCategory::When when, const std::vector<std::string>& values) const {
    if (when == CsvCategory::When::always) return true;
    const auto is_name = [&](const auto& text) { return values_.is_name(text); };
    // Amounts and numbers with a decimal comma are not class names. If the option that reads such numbers is
    // not set, they are reported as errors.
    const auto is_number = [&](const auto& text) {
      return values_.number(text).has_value() || !values_.advice(text, "").empty();
    };
    return std::any_of(values.begin(), values.end(), is_name) &&
           (when == CsvCategory::When::some_are_names ||
            std::none_of(values.begin(), values.end(), is_number));
  }

  /// Returns how to read the field; null for the default way.
  const ColumnReading* reading_of(size_t field) const {
    const auto found = plan_.readings.find(field);
    return found == plan_.readings.end() ? nullptr : &found->second;
  }
  /// Returns true if a 0/1 indicator follows the field's elements in this part.
  bool has_indicator(const CsvPart& part, size_t field) const {
    const ColumnReading* reading = reading_of(field);
    return reading && reading->indicator.value_or(false) && !part.scalar && part.dtype != DType::int32;
  }

  /// Returns the number of elements that a part has for a field, not counting the indicator.
  size_t elements_of(const CsvPart& part, size_t field) const {
    if (part.scalar || part.dtype == DType::int32) return 1;
    if (const auto table = tables_.find(field); table != tables_.end()) return table->second.values().size();
    const ColumnReading* reading = reading_of(field);
    return reading && !reading->dates.empty() ? reading->dates.size() : 1;
  }

  Making make_part(const CsvPart& part) {
    size_t elements = 0;
    for (const CsvElement& element : part.fields)
      elements += elements_of(part, element.field) + (has_indicator(part, element.field) ? 1 : 0);
    Making making{{text_.path(), part.scalar ? Shape{} : Shape{static_cast<int64_t>(elements)}, part.dtype},
                  nullptr};
    const size_t stride = bytes_of(part.dtype) * elements;
    making.data = allocate_rows(stride);
    size_t at = 0;
    for (const CsvElement& element : part.fields) {
      using Kind = CsvDestination::Kind;
      const auto table = tables_.find(element.field);
      const ColumnReading* const reading = reading_of(element.field);
      const bool integers = part.dtype == DType::int32, dates = reading && !reading->dates.empty();
      CsvDestination to{.kind = integers ? Kind::int32
                                : dates  ? Kind::dates
                                         : Kind::real,
                        .dtype = part.dtype,
                        .base = making.data.get() + bytes_of(part.dtype) * at,
                        .stride = stride,
                        .values = &values_,
                        .reading = reading,
                        .gap = element.gap,
                        .advice_for_gap = part.advice_for_gap};
      if (table != tables_.end()) {
        to.table = &table->second;
        if (!part.scalar && !to.table->separator())
          to.advice_for_gap = to.advice_for_unknown =
              "set 'unknown: other' to accept missing values and values that the training file does not have";
        to.kind = integers ? Kind::index32 : part.scalar ? Kind::index_float32 : Kind::features;
      }
      destinations_.emplace(element.field, to);
      at += elements_of(part, element.field);
      if (!has_indicator(part, element.field)) continue;
      to.kind = Kind::indicator;
      to.base = making.data.get() + bytes_of(part.dtype) * at++;
      destinations_.emplace(element.field, to);
    }
    return making;
  }

  Making make_text(size_t field, const std::string& title) {
    return make(field, {title, Shape{static_cast<int64_t>(longest_.at(field))}, DType::uint8},
                CsvDestination::Kind::text);
  }

  /// Makes the time column. Dates are stored as days, even if an input has other features of the same dates.
  Making make_times(size_t field) {
    using Kind = CsvDestination::Kind;
    const ColumnReading* const reading = reading_of(field);
    const bool are_dates = reading && !reading->dates.empty();
    if (are_dates) time_reading_ = {.dates = {DatePart::days}, .form = reading->form};
    return make(field, {text_.path(), {}, DType::float64}, are_dates ? Kind::dates : Kind::real);
  }

  Making make_tokens(const CsvPart& part) {
    return make(part.fields.front().field, {text_.path(), Shape{part.tokens}, DType::int32},
                CsvDestination::Kind::tokens);
  }

  Making make(size_t field, TensorSpec spec, CsvDestination::Kind kind) {
    const size_t bytes = static_cast<size_t>(spec.shape.elements()) * bytes_of(spec.dtype);
    Making making{std::move(spec), allocate_rows(bytes)};
    const auto text = plan_.texts.find(field);
    destinations_.emplace(
        field,
        CsvDestination{.kind = kind,
                       .dtype = making.spec.dtype,
                       .base = making.data.get(),
                       .stride = bytes,
                       .width = bytes,
                       .values = &values_,
                       .reading = kind == CsvDestination::Kind::dates ? &time_reading_ : reading_of(field),
                       .tokenizer = text == plan_.texts.end() ? nullptr : text->second.tokenizer.get(),
                       .advice_for_gap = "each row must have a value"});
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

  void fill() {
    const CsvFiller filler({text_, values_, start_, plan_}, destinations_, doubtful_);
    std::mutex mutex;
    try {
      run_blocks(static_cast<int64_t>(blocks_.size()), [&](int64_t i) {
        const auto losses = filler.fill(blocks_[static_cast<size_t>(i)]);
        const std::lock_guard lock(mutex);
        for (const auto& [field, loss] : losses) losses_[field].add(loss);
      });
    } catch (const CsvWrongValueFound&) {
      reject_values(filler);
    }
  }

  /// Reads all rows again, and throws LocatedError about the first wrong value of each column. Throws
  /// CsvTextAmongNumbers instead if one of these columns may have categories.
  [[noreturn]] void reject_values(const CsvFiller& filler) const {
    CsvWrongValues all;
    for (const CsvBlock& block : blocks_) filler.find_wrong(block, all);
    std::map<const char*, std::string> messages;  // indexed by position in the file
    for (const auto& [field, value] : all) {
      if (doubtful_.contains(field)) throw CsvTextAmongNumbers{field};
      messages.emplace(value.at, value.message);
    }
    if (messages.empty()) throw Error(text_.path() + ": the file was changed while it was in use");
    std::vector<Diagnostics::Item> errors;
    for (const auto& [at, message] : messages)
      if (!message.empty()) errors.push_back({{}, message});
    if (const size_t more = messages.size() - errors.size(); more > 0)
      errors.push_back({{},
                        fmt::format("{}: values in {} cannot be read", text_.path(),
                                    format_plural(static_cast<int64_t>(more), "more column"))});
    throw LocatedError(std::move(errors));
  }

  CsvText text_;
  CsvFormat format_;
  CsvValues values_;
  CsvStart start_;
  CsvPlan plan_;
  std::map<size_t, CsvCategory> doubtful_;  // fields of CsvPlan::categories that are read as numbers
  std::vector<CsvBlock> blocks_;
  int64_t rows_ = 0;
  std::map<size_t, size_t> longest_;        // bytes of the longest text of each field
  ColumnReading time_reading_;              // reading of CsvPlan::time, if it is a column of dates
  std::map<size_t, CategoryTable> tables_;  // indexed by field
  std::multimap<size_t, CsvDestination> destinations_;
  std::map<size_t, DigitLoss> losses_;  // indexed by field
};

}  // namespace

bool has_other_delimiter(const std::vector<std::string>& names) {
  return names.size() == 1 && names[0].find_first_of(";\t|,") != std::string::npos;
}

size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const bool is_one = has_other_delimiter(names);
  const std::string meant = is_one ? "" : suggestion(name, names);
  throw UserError(fmt::format("{}: expected a column named '{}'{} found the column{} {}{}", path, name,
                              meant.empty() ? "," : meant, names.size() == 1 ? "" : "s",
                              list_some(names, kMostCsvNames),
                              is_one ? "; set 'delimiter' to the character that separates columns" : ""));
}

std::vector<size_t> places_of_columns(const std::string& path, const std::vector<std::string>& wanted,
                                      const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, size_t> place_of;  // index of the first column with each name
  for (size_t i = 0; i < names.size(); ++i) place_of.emplace(names[i], i);
  std::vector<std::string> missing;
  for (const std::string& name : wanted)
    if (!place_of.contains(name)) missing.push_back(name);
  if (missing.size() > 1 && names.size() > 1) {
    std::string list;
    for (size_t i = 0; i < std::min(missing.size(), kMostCsvNames); ++i) {
      const std::string meant = suggestion(missing[i], names);  // begins with "; "
      list += fmt::format("{}'{}'{}", i == 0 ? "" : ", ", missing[i],
                          meant.empty() ? "" : fmt::format(" ({})", meant.substr(2)));
    }
    if (missing.size() > kMostCsvNames) list += fmt::format(" and {} more", missing.size() - kMostCsvNames);
    throw UserError(fmt::format("{}: expected columns named {}, found the columns {}", path, list,
                                list_some(names, kMostCsvNames)));
  }
  std::vector<size_t> places;
  for (const std::string& name : wanted) {
    const auto found = place_of.find(name);
    places.push_back(found == place_of.end() ? place_of_column(path, name, names) : found->second);
  }
  return places;
}

CsvColumns read_csv(const std::string& path, const CsvFormat& format, const PlanCsv& plan) {
  return CsvTable(path, format).read(plan);
}

}  // namespace dtrain
