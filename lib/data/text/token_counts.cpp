#include "data/text/token_counts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text/bpe.h"
#include "data/text/words.h"

namespace dtrain {

namespace {

void count_text(TextCounts& counts, std::string_view text, int64_t times) {
  const auto found = counts.find(text);
  if (found == counts.end())
    counts.emplace(text, times);
  else
    found->second += times;
}

}  // namespace

void TokenCounts::add(std::string_view text) {
  const auto count = [&](std::string_view piece) { count_text(counts_, piece, 1); };
  if (options_.tokens == TokenKind::words) for_each_word(text, options_.standardize_words(), count);
  if (options_.tokens == TokenKind::bpe) for_each_piece(text, count);
}

void TokenCounts::merge(const TokenCounts& other) {
  for (const auto& [text, times] : other.counts_) count_text(counts_, text, times);
}

LearnedTokens TokenCounts::learn(const std::string& where) const {
  LearnedTokens learned{options_.tokens, TextStandardization::none, {}, {}};
  if (options_.tokens == TokenKind::bpe) learned.merges = learn_merges(counts_, options_.ids() - kByteTokens);
  if (options_.tokens != TokenKind::words) return learned;
  if (counts_.empty()) throw UserError(fmt::format("{}: expected a text with words, found no words", where));
  learned.standardize = options_.standardize_words();
  learned.words = most_frequent_words();
  return learned;
}

std::vector<std::string> TokenCounts::most_frequent_words() const {
  std::vector<std::pair<int64_t, std::string_view>> sorted;
  for (const auto& [word, times] : counts_) sorted.emplace_back(times, word);
  const auto most = std::min(sorted.size(), static_cast<size_t>(options_.ids() - kFirstWord));
  std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(most), sorted.end(),
                    std::greater<>());
  std::vector<std::string> words;
  for (size_t i = 0; i < most; ++i) words.emplace_back(sorted[i].second);
  return words;
}

}  // namespace dtrain
