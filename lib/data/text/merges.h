// Functions that merge pairs of tokens, for learning vocabularies and for encoding texts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/text_hash.h"
#include "data/text/learned_tokens.h"

namespace dtrain {

/// Returns a number that identifies the pair. Pairs are ordered by their first id, then by their second.
constexpr uint64_t merge_key(int32_t first, int32_t second) {
  return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second);
}

/// Replaces each occurrence of the pair, from left to right, with the token `merged`.
void merge_pair(std::vector<int32_t>& tokens, const TokenMerge& pair, int32_t merged);

/// The number of occurrences of each text.
using TextCounts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

/// Learns at most `most` merges of byte pair encoding from the counts of pieces. Each step merges the most
/// frequent pair. If several pairs are equally frequent, it merges the pair with the smallest ids. Learning
/// ends when no pair occurs at least twice. Overlapping pairs are counted, too: aaa contains the pair aa
/// twice.
std::vector<TokenMerge> learn_merges(const TextCounts& pieces, int64_t most);

}  // namespace dtrain
