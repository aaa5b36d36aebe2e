#include "data/readers/csv_categories.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "base/text_hash.h"
#include "data/parallel.h"
#include "data/readers/csv_values.h"

namespace dtrain {

namespace {

using TextSet = std::unordered_set<std::string, TextHash, std::equal_to<>>;

std::vector<std::string> sorted(const TextSet& texts) {
  std::vector<std::string> all(texts.begin(), texts.end());
  std::sort(all.begin(), all.end());
  if (std::all_of(all.begin(), all.end(), [](const auto& text) { return csv_number(text).has_value(); }))
    std::stable_sort(all.begin(), all.end(), [](const std::string& a, const std::string& b) {
      return *csv_number(a) < *csv_number(b);
    });
  return all;
}

using Values = std::map<size_t, TextSet>;

/// Adds the values of a block to `found`, and returns the length of its longest id.
size_t collect(const CsvText& text, const CsvBlock& block, size_t width, std::optional<size_t> id,
               Values& found) {
  size_t longest = 1;
  std::vector<TextSet*> sets(width, nullptr);
  for (auto& [i, values] : found) sets[i] = &values;
  CsvFields fields(text);
  CsvField field;
  for (const char* p = text.skip_blank(block.begin); p < block.end; p = text.skip_blank(p)) {
    field.last = false;
    for (size_t i = 0; i < width && !field.last; ++i) {
      p = fields.read(p, field);
      if (id == i) longest = std::max(longest, field.text.size());
      if (sets[i] && !sets[i]->contains(field.text) && !is_csv_missing_name(field.text))
        sets[i]->emplace(field.text);
    }
    while (!field.last) p = fields.read(p, field);  // too many are an error later
  }
  return longest;
}

}  // namespace

CsvTexts collect_csv_texts(const CsvText& text, const std::vector<CsvBlock>& blocks, size_t width,
                           const std::set<size_t>& fields, std::optional<size_t> id) {
  Values all;
  for (const size_t field : fields) all[field];
  CsvTexts texts;
  std::mutex mutex;
  run_blocks(static_cast<int64_t>(blocks.size()), [&](int64_t i) {
    Values found;
    for (const size_t field : fields) found[field];
    const size_t longest = collect(text, blocks[static_cast<size_t>(i)], width, id, found);
    const std::lock_guard lock(mutex);
    texts.longest = std::max(texts.longest, longest);
    for (auto& [field, values] : found) all[field].merge(values);
  });
  for (const auto& [field, values] : all) texts.values[field] = sorted(values);
  return texts;
}

}  // namespace dtrain
