// A vocabulary learned from the training split: a fact about the data that checkpoints store.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/text/token_options.h"

namespace dtrain {

/// The ids of two tokens that are merged into one token.
using TokenMerge = std::pair<int32_t, int32_t>;

struct LearnedTokens {
  TokenKind kind = TokenKind::bytes;
  TextStandardization standardize = TextStandardization::none;  // standardization of words
  std::vector<std::string> words;  // word i has the id kFirstWord + i; the most frequent word is first
  std::vector<TokenMerge> merges;  // merge i makes the token with the id 256 + i

  /// Returns the number of ids.
  int64_t size() const;
  bool operator==(const LearnedTokens&) const = default;
  Json to_json() const;
  /// Throws UserError if a part of the JSON value is missing or malformed, or if a merge names an id that
  /// does not exist yet.
  static LearnedTokens from_json(const Json& json);
};

}  // namespace dtrain
