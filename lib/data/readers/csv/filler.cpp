#include "data/readers/csv/filler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/readers/csv/decimal.h"

namespace dtrain {

CsvFiller::CsvFiller(const CsvRejection& refusal, const std::multimap<size_t, CsvDestination>& destinations,
                     const std::map<size_t, CsvCategory>& doubtful)
    : rejection_(refusal),
      text_(refusal.text),
      values_(refusal.values),
      destinations_(destinations),
      doubtful_(doubtful) {}

std::vector<CsvFiller::Field> CsvFiller::fields_for(std::map<size_t, DigitLoss>& losses) const {
  std::vector<Field> fields(rejection_.start.width());
  for (const auto& [i, to] : destinations_) {
    fields[i].to.push_back(to);
    if (to.can_lose_digits()) fields[i].to.back().loss = &losses[i];
  }
  for (Field& field : fields)
    field.takes_plain_numbers = !field.to.empty() && values_.decimal() != text_.delimiter() &&
                                std::all_of(field.to.begin(), field.to.end(),
                                            [](const auto& to) { return to.takes_plain_numbers(); });
  return fields;
}

template <class Visit>
void CsvFiller::for_each_row(const CsvBlock& block, CsvFields& reader, Visit visit) const {
  auto row = static_cast<size_t>(block.first_row);
  const size_t end = row + static_cast<size_t>(block.kept());
  auto left_out = block.left_out.begin();
  int64_t number = 0;  // index of the row in its block
  for (const char* p = text_.skip_blank(block.begin); p < block.end; p = text_.skip_blank(p), ++number) {
    if (left_out != block.left_out.end() && *left_out == number) {
      CsvField field;
      while (!field.last) p = reader.read(p, field);
      ++left_out;
      continue;
    }
    if (row == end) fail_changed();
    visit(p, row++);
  }
  if (row != end) fail_changed();
}

std::map<size_t, DigitLoss> CsvFiller::fill(const CsvBlock& block) const {
  std::map<size_t, DigitLoss> losses;
  const std::vector<Field> fields = fields_for(losses);
  CsvFields reader(text_);
  for_each_row(block, reader, [&](const char*& p, size_t row) { fill_row(p, row, fields, reader); });
  return losses;
}

namespace {

/// Returns the message of the UserError that `reject` throws.
template <class Reject>
std::string message_of(Reject reject) {
  try {
    reject();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

void CsvFiller::find_wrong(const CsvBlock& block, CsvWrongValues& wrong) const {
  std::map<size_t, DigitLoss> losses;
  const std::vector<Field> fields = fields_for(losses);
  CsvFields reader(text_);
  const char* line = block.begin;
  const std::string problem = message_of([&] {
    for_each_row(block, reader, [&](const char*& p, size_t row) {
      line = p;
      find_in_row(p, row, fields, reader, wrong);
    });
  });
  // If an opening quote has no closing quote, the rest of the block is not read.
  if (!problem.empty()) wrong.try_emplace(fields.size() + 1, CsvWrongValue{line, problem});
}

void CsvFiller::find_in_row(const char*& p, size_t row, const std::vector<Field>& fields, CsvFields& reader,
                            CsvWrongValues& wrong) const {
  const char* const line = p;
  CsvField field;
  if (CsvFields(text_).count(line) != fields.size()) {
    while (!field.last) p = reader.read(p, field);
    const bool is_reported = wrong.size() < kMostWrongValues;
    const auto [found, is_new] = wrong.try_emplace(fields.size(), CsvWrongValue{line, ""});
    if (is_new && is_reported) found->second.message = message_of([&] { rejection_.reject_width(line); });
    return;
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    p = reader.read(p, field);
    if (wrong.contains(i)) continue;
    for (const CsvDestination& to : fields[i].to)
      if (!to.store(field.text, row)) {
        // A message contains the line number. To find this number, reject_value() counts the lines from the
        // start of the file, so only the first kMostWrongValues messages are created.
        const auto reject = [&] { rejection_.reject_value(line, field, i, to); };
        wrong.emplace(i, CsvWrongValue{field.at, wrong.size() < kMostWrongValues ? message_of(reject) : ""});
        break;
      }
  }
}

/// Reads a row and moves `p` to its end.
void CsvFiller::fill_row(const char*& p, size_t row, const std::vector<Field>& fields,
                         CsvFields& reader) const {
  const char* const line = p;
  CsvField field;
  double value = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto& of = fields[i];
    const bool last = i + 1 == fields.size();
    if (of.takes_plain_numbers)
      if (const char* next = read_plain_number(p, last, value)) {
        for (const CsvDestination& to : of.to) to.store_number(value, row);
        p = next;
        continue;
      }
    p = reader.read(p, field);
    if (field.last != last) rejection_.reject_width(line);
    for (const CsvDestination& to : of.to)
      if (!to.store(field.text, row)) refuse(line, field, i, to);
  }
}

/// Reads the value at `p` if it is a plain number that float32 can hold and is not a missing value. Returns
/// the beginning of the next field, or null for any other value.
const char* CsvFiller::read_plain_number(const char* p, bool last, double& value) const {
  const char* const end = text_.end();
  p = read_decimal(p, end, value, values_.decimal());
  if (!p) return nullptr;
  if (p < end && last && *p == '\r') ++p;
  if (p < end && *p != (last ? '\n' : text_.delimiter())) return nullptr;
  if (p == end && !last) return nullptr;
  if (!std::isfinite(static_cast<float>(value))) return nullptr;
  if (values_.has_na_numbers() && values_.is_na_number(value)) return nullptr;
  return p == end ? p : p + 1;
}

void CsvFiller::refuse(const char* line, const CsvField& field, size_t index,
                       const CsvDestination& to) const {
  if (CsvFields(text_).count(line) != rejection_.start.width()) rejection_.reject_width(line);
  if (doubtful_.contains(index)) throw CsvTextAmongNumbers{index};
  if (rejection_.is_in_header(line, field.text)) rejection_.reject_value(line, field, index, to);
  throw CsvWrongValueFound();
}

/// Throws Error because the file no longer has the number of rows for which the columns were allocated.
void CsvFiller::fail_changed() const {
  throw Error(text_.path() + ": the file was changed while it was in use");
}

}  // namespace dtrain
