// Learns a vocabulary from text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/text/merges.h"

namespace dtrain {

/// Counts the words or pieces of texts. The vocabulary depends only on the counts, so texts may be counted in
/// any order and on several threads, each with its own object.
class TokenCounts {
 public:
  explicit TokenCounts(const TokenOptions& options) : options_(options) {}

  void add(std::string_view text);
  /// Adds the counts of an object with the same options.
  void merge(const TokenCounts& other);
  /// Returns a vocabulary of at most TokenOptions::vocabulary ids. Words are sorted by descending count, and
  /// words with the same count in descending byte order, as in Keras. Throws UserError if there are no words.
  /// `where` is the name of the text in this message.
  LearnedTokens learn(const std::string& where) const;

 private:
  std::vector<std::string> most_frequent_words() const;

  TokenOptions options_;
  TextCounts counts_;  // counts of words or pieces; empty for bytes
};

}  // namespace dtrain
