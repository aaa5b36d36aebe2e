// Learns a vocabulary from text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/text_hash.h"
#include "data/text/learned_tokens.h"

namespace dtrain {

/// How often each text occurs.
using TextCounts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

/// Counts the words or pieces of texts. The vocabulary depends only on the counts, so texts may be counted in
/// any order and on several threads, each with its own object.
class TokenCounts {
 public:
  explicit TokenCounts(const TokenOptions& options) : options_(options) {}

  void add(std::string_view text);
  /// Adds the counts of an object with the same options.
  void merge(const TokenCounts& other);
  /// Returns a vocabulary of at most TokenOptions::vocabulary ids. Words are sorted by their counts, and
  /// equal counts by descending bytes, as in Keras. Throws UserError, which names the text `where`, if there
  /// are no words.
  LearnedTokens learn(const std::string& where) const;

 private:
  std::vector<std::string> most_frequent_words() const;

  TokenOptions options_;
  TextCounts counts_;  // empty for bytes
};

/// Learns byte pair encoding from the counts of pieces: at most `most` merges, each of the most frequent pair
/// at its time that occurs at least twice, and of the pair with the smallest ids among pairs of the same
/// count. In a run of equal ids such as aaa, both pairs count.
std::vector<TokenMerge> learn_merges(const TextCounts& pieces, int64_t most);

}  // namespace dtrain
