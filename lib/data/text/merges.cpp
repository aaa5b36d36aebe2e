#include "data/text/merges.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <utility>

namespace dtrain {

namespace {

// A pair is merged only if it occurs at least this often. A pair that occurs once is not likely to occur in
// other texts.
constexpr int64_t kFewestPairs = 2;

/// Learns byte pair encoding (Sennrich et al. 2016). A merge changes only the pieces that contain its pair,
/// so the counts are updated for these pieces only. A heap gives the most frequent pair.
class MergeTrainer {
 public:
  explicit MergeTrainer(const TextCounts& counts) {
    for (const auto& [text, times] : counts) {
      if (text.size() < 2) continue;
      pieces_.push_back({{}, times});
      for (const char c : text) pieces_.back().tokens.push_back(static_cast<unsigned char>(c));
      count_pairs(static_cast<uint32_t>(pieces_.size() - 1), std::nullopt);
    }
    for (const auto& [key, pair] : pairs_) push(key, pair);
  }

  std::vector<TokenMerge> learn(size_t most) {
    std::vector<TokenMerge> merges;
    while (merges.size() < most && !heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      Pair& pair = pairs_.at(best.key);
      if (pair.count != best.count) {  // the count of the pair has changed since it was pushed to the queue
        push(best.key, pair);
        continue;
      }
      merges.emplace_back(static_cast<int32_t>(best.key >> 32), static_cast<int32_t>(best.key));
      merge(pair, merges.back(), static_cast<int32_t>(kByteTokens) + static_cast<int32_t>(merges.size()) - 1);
    }
    return merges;
  }

 private:
  struct Piece {
    std::vector<int32_t> tokens;
    int64_t times;
  };
  struct Pair {
    int64_t count = 0;
    // Indices of the pieces that contain the pair, without duplicates. Later merges may have removed the pair
    // from some of these pieces.
    std::vector<uint32_t> pieces;
  };
  struct Candidate {
    int64_t count;
    uint64_t key;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  void push(uint64_t key, const Pair& pair) {
    if (pair.count >= kFewestPairs) heap_.push({pair.count, key});
  }

  /// Counts all pairs of a piece, and adds the piece to the list of each pair. If `new_token` is given, adds
  /// the piece only to the lists of pairs that contain this token, because the piece is already in the lists
  /// of its other pairs.
  void count_pairs(uint32_t index, std::optional<int32_t> new_token) {
    const Piece& piece = pieces_[index];
    for (size_t i = 0; i + 1 < piece.tokens.size(); ++i) {
      const uint64_t key = merge_key(piece.tokens[i], piece.tokens[i + 1]);
      Pair& pair = pairs_[key];
      pair.count += piece.times;
      if (new_token && piece.tokens[i] != *new_token && piece.tokens[i + 1] != *new_token) continue;
      if (pair.pieces.empty() || pair.pieces.back() != index) pair.pieces.push_back(index);
      if (new_token) new_pairs_.push_back(key);
    }
  }

  void uncount_pairs(const Piece& piece) {
    for (size_t i = 0; i + 1 < piece.tokens.size(); ++i)
      pairs_.at(merge_key(piece.tokens[i], piece.tokens[i + 1])).count -= piece.times;
  }

  void merge(Pair& pair, const TokenMerge& ids, int32_t token) {
    new_pairs_.clear();
    for (const uint32_t index : std::exchange(pair.pieces, {})) {
      Piece& piece = pieces_[index];
      uncount_pairs(piece);
      merge_pair(piece.tokens, ids, token);
      count_pairs(index, token);
    }
    std::sort(new_pairs_.begin(), new_pairs_.end());
    new_pairs_.erase(std::unique(new_pairs_.begin(), new_pairs_.end()), new_pairs_.end());
    for (const uint64_t key : new_pairs_) push(key, pairs_.at(key));
  }

  std::vector<Piece> pieces_;
  std::unordered_map<uint64_t, Pair> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<uint64_t> new_pairs_;  // keys of pairs that contain the token of the current merge
};

}  // namespace

void merge_pair(std::vector<int32_t>& tokens, const TokenMerge& pair, int32_t merged) {
  size_t kept = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_pair = i + 1 < tokens.size() && tokens[i] == pair.first && tokens[i + 1] == pair.second;
    tokens[kept++] = is_pair ? merged : tokens[i];
    if (is_pair) ++i;
  }
  tokens.resize(kept);
}

std::vector<TokenMerge> learn_merges(const TextCounts& pieces, int64_t most) {
  return MergeTrainer(pieces).learn(static_cast<size_t>(std::max<int64_t>(most, 0)));
}

}  // namespace dtrain
