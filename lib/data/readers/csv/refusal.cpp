#include "data/readers/csv/refusal.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/name_list.h"
#include "base/text.h"
#include "config/diagnostics.h"
#include "data/readers/csv/dates.h"

namespace dtrain {

namespace {

std::string after_semicolon(std::string_view advice) {
  return advice.empty() ? "" : fmt::format("; {}", advice);
}

/// Returns true if the text has no letter and no digit: "--", ".".
bool is_punctuation(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c >= 0x80;
  });
}

}  // namespace

void CsvRejection::reject_width(const char* line) const {
  text.fail_line(line, fmt::format("expected {} as in the first line, found {}",
                                   format_plural(static_cast<int64_t>(start.width()), "value"),
                                   CsvFields(text).count(line)));
}

void CsvRejection::reject_value(const char* line, const CsvField& field, size_t index,
                                const CsvDestination& to) const {
  const std::string_view found = field.text.substr(0, 40);
  const std::string called =
      start.names.empty() ? "" : fmt::format(" in the column '{}'", start.names[index]);
  const bool missing_name = to.table && values.is_missing_name(field.text);
  const std::string expected = (missing_name ? "a value" : to.expected()) + called;
  if (to.table && !missing_name)
    text.fail(field.at,
              fmt::format("expected {} ({}), found '{}'{}{}", expected,
                          list_some(to.table->values(), kMostCsvNames), found,
                          suggestion(found, to.table->values()), after_semicolon(to.advice_for_unknown)));
  text.fail(field.at, fmt::format("expected {}, found {}{}", expected,
                                  text.is_blank_row(line) ? "a blank line" : fmt::format("'{}'", found),
                                  advice(line, field.text, index, to)));
}

bool CsvRejection::is_in_header(const char* line, std::string_view found) const {
  return line == text.skip_blank(text.begin()) && start.names.empty() && values.is_name(found);
}

std::string CsvRejection::advice(const char* line, std::string_view found, size_t index,
                                 const CsvDestination& to) const {
  if (is_in_header(line, found)) return "; if the first line is a header, set the option 'header'";
  if (to.kind == CsvDestination::Kind::tokens) return "; `tokens: bytes` and `tokens: bpe` accept any bytes";
  if (to.table || values.is_gap(found)) return after_semicolon(to.advice_for_gap);
  if (to.kind == CsvDestination::Kind::dates) return after_semicolon(why_no_date(found, *to.reading->form));
  return plan.advice.empty() ? "" : advice_for_text(found, index);
}

std::string CsvRejection::advice_for_text(std::string_view found, size_t index) const {
  const std::string column = start.names.empty() ? std::to_string(index) : start.names[index];
  if (is_csv_date(found))
    return fmt::format(
        "; a date is not a number; set 'dates: {{{}: [year, month, weekday, days]}}' to make features from "
        "it, or list the column in 'drop' to leave it out",
        column);
  if (const auto number = values.number(found))
    return std::isfinite(static_cast<float>(*number)) ? "" : "; float32 holds numbers up to 3.4e38";
  if (const std::string of_numbers = values.advice(found, column); !of_numbers.empty())
    return "; " + of_numbers;
  if (!values.is_name(found)) return "";
  const std::string missing = fmt::format("'na_values: [\"{}\"]' if this text marks a missing value", found);
  return is_punctuation(found) ? "; set " + missing : fmt::format("; {}; set {}", plan.advice, missing);
}

}  // namespace dtrain
