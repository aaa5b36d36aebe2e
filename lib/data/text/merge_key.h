// Merging of pairs of tokens, for training and encoding.
#pragma once

#include <cstdint>
#include <vector>

#include "data/text/learned_tokens.h"

namespace dtrain {

/// Returns a number that identifies the pair. Pairs are ordered by their first id, then by their second.
constexpr uint64_t merge_key(int32_t first, int32_t second) {
  return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second);
}

/// Replaces each occurrence of the pair, from the left, by the token `merged`.
void merge_pair(std::vector<int32_t>& tokens, const TokenMerge& pair, int32_t merged);

}  // namespace dtrain
