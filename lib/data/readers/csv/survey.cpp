#include "data/readers/csv/survey.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "base/text_hash.h"
#include "data/loader/parallel.h"

namespace dtrain {

namespace {

using TextSet = std::unordered_set<std::string, TextHash, std::equal_to<>>;

std::vector<std::string> sorted(const TextSet& texts, const CsvValues& values) {
  std::vector<std::string> all(texts.begin(), texts.end());
  std::sort(all.begin(), all.end());
  if (std::all_of(all.begin(), all.end(), [&](const auto& text) { return values.number(text).has_value(); }))
    std::stable_sort(all.begin(), all.end(), [&](const std::string& a, const std::string& b) {
      return *values.number(a) < *values.number(b);
    });
  return all;
}

/// Findings of the survey in one block. merge() adds the findings of another block.
struct Findings {
  explicit Findings(const CsvQuestions& questions) {
    for (const size_t field : questions.texts) texts[field];
    for (const size_t field : questions.dates) dates[field];
    for (const size_t field : questions.lengths) longest[field] = 1;
    for (const auto& [field, options] : questions.tokens) tokens.emplace(field, options);
  }
  void merge(Findings& other) {
    for (auto& [field, found] : other.texts) texts[field].merge(found);
    for (auto& [field, found] : other.dates) dates[field].merge(found);
    for (auto& [field, found] : other.tokens) tokens.at(field).merge(found);
    gaps.merge(other.gaps);
    for (const auto& [field, bytes] : other.longest) longest[field] = std::max(longest[field], bytes);
  }

  std::map<size_t, TextSet> texts;
  std::map<size_t, DateFormFinder> dates;
  std::map<size_t, TokenCounts> tokens;
  std::set<size_t> gaps;
  std::map<size_t, size_t> longest;
};

class Surveyor {
 public:
  Surveyor(const CsvText& text, const CsvValues& values, size_t width, const CsvQuestions& questions)
      : text_(text), values_(values), questions_(questions), fields_(text), of_field_(width) {}

  void survey(CsvBlock& block, Findings& found) {
    for (auto& [i, texts] : found.texts) of_field_[i].texts = &texts;
    for (auto& [i, dates] : found.dates) of_field_[i].dates = &dates;
    for (auto& [i, bytes] : found.longest) of_field_[i].longest = &bytes;
    for (auto& [i, tokens] : found.tokens) of_field_[i].tokens = &tokens;
    for (const size_t i : questions_.gaps) of_field_[i].gaps = true;
    for (const auto& [i, names] : questions_.required) of_field_[i].required = names ? 2 : 1;
    block.left_out.clear();
    const char* p = text_.skip_blank(block.begin);
    for (int64_t row = 0; p < block.end; p = text_.skip_blank(p), ++row) {
      if (!questions_.required.empty())
        if (const char* next = pass_over(p)) {
          block.left_out.push_back(row);
          p = next;
          continue;
        }
      p = survey_row(p, found);
    }
  }

 private:
  struct OfField {
    TextSet* texts = nullptr;
    DateFormFinder* dates = nullptr;
    size_t* longest = nullptr;
    TokenCounts* tokens = nullptr;
    bool gaps = false;
    // The value that a row must have in this field: 0 if no value is required, 1 for a number, 2 for a name.
    // A row without the required value is left out.
    int required = 0;
  };

  /// If the row at `p` must be left out, returns the beginning of the next row. Otherwise returns null.
  const char* pass_over(const char* p) {
    bool is_left_out = false;
    CsvField field;
    for (size_t i = 0; !field.last; ++i) {
      p = fields_.read(p, field);
      const int required = i < of_field_.size() ? of_field_[i].required : 0;
      if (required != 0 && !is_left_out)
        is_left_out = required == 2 ? values_.is_missing_name(field.text) : values_.is_gap(field.text);
    }
    return is_left_out ? p : nullptr;
  }

  const char* survey_row(const char* p, Findings& found) {
    CsvField field;
    for (size_t i = 0; i < of_field_.size() && !field.last; ++i) {
      p = fields_.read(p, field);
      const OfField& of = of_field_[i];
      if (of.longest) *of.longest = std::max(*of.longest, field.text.size());
      if (of.texts && !of.texts->contains(field.text) && !values_.is_missing_name(field.text))
        of.texts->emplace(field.text);
      if (of.tokens) of.tokens->add(field.text);
      if (!of.dates && !of.gaps) continue;
      const bool is_gap = values_.is_gap(field.text);
      if (of.gaps && is_gap) found.gaps.insert(i);
      if (of.dates && !is_gap) of.dates->add(field.text);
    }
    while (!field.last) p = fields_.read(p, field);  // extra fields are reported later
    return p;
  }

  const CsvText& text_;
  const CsvValues& values_;
  const CsvQuestions& questions_;
  CsvFields fields_;
  std::vector<OfField> of_field_;
};

}  // namespace

CsvAnswers survey_csv(const CsvText& text, const CsvValues& values, size_t width,
                      const CsvQuestions& questions, std::vector<CsvBlock>& blocks) {
  Findings all(questions);
  std::mutex mutex;
  run_blocks(static_cast<int64_t>(blocks.size()), [&](int64_t i) {
    Findings found(questions);
    Surveyor(text, values, width, questions).survey(blocks[static_cast<size_t>(i)], found);
    const std::lock_guard lock(mutex);
    all.merge(found);
  });
  int64_t rows = 0;
  for (CsvBlock& block : blocks) {
    block.first_row = rows;
    rows += block.kept();
  }
  CsvAnswers answers{
      {}, std::move(all.dates), std::move(all.gaps), std::move(all.tokens), std::move(all.longest)};
  for (const auto& [field, texts] : all.texts) answers.texts[field] = sorted(texts, values);
  return answers;
}

}  // namespace dtrain
