#include "data/text/bpe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "base/ascii.h"
#include "base/error.h"
#include "data/text/merges.h"

namespace dtrain {

namespace {

enum class CharKind { space, letter, digit, other };

CharKind kind_of(char c) {
  if (is_ascii_space(c)) return CharKind::space;
  if (static_cast<unsigned char>(c) >= 0x80 || is_ascii_letter(c)) return CharKind::letter;
  return is_ascii_digit(c) ? CharKind::digit : CharKind::other;
}

size_t end_of_run(std::string_view text, size_t at, CharKind kind) {
  while (at < text.size() && kind_of(text[at]) == kind) ++at;
  return at;
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// Divides a run into parts of at most kMostPieceBytes bytes, and calls `visit` for each part.
void visit_in_parts(std::string_view run, const std::function<void(std::string_view)>& visit) {
  while (run.size() > kMostPieceBytes) {
    size_t end = kMostPieceBytes;
    while (end > kMostPieceBytes - 3 && continues_character(run[end])) --end;
    if (continues_character(run[end]))
      end = kMostPieceBytes;  // the text is not UTF-8, so the part may end anywhere
    visit(run.substr(0, end));
    run.remove_prefix(end);
  }
  if (!run.empty()) visit(run);
}

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(const LearnedTokens& given) : Tokenizer(given) {
    for (int byte = 0; byte < kByteTokens; ++byte)
      pieces_.emplace_back(byte_piece(static_cast<unsigned char>(byte)));
    for (const auto& [first, second] : learned().merges) {
      merged_.emplace(merge_key(first, second), static_cast<int32_t>(pieces_.size()));
      pieces_.push_back(pieces_[static_cast<size_t>(first)] + pieces_[static_cast<size_t>(second)]);
      if (pieces_.back().size() > kMostPieceBytes)
        throw UserError("a token of the bpe vocabulary has more than 64 bytes");
    }
  }

  /// Encodes each distinct piece only once, and copies the ids if the piece occurs again.
  std::vector<int32_t> encode(std::string_view text) const override {
    struct Range {
      size_t begin, count;
    };
    std::vector<int32_t> ids;
    std::unordered_map<std::string_view, Range> seen;
    for_each_piece(text, [&](std::string_view piece) {
      const auto [found, is_new] = seen.try_emplace(piece, Range{ids.size(), 0});
      if (is_new) {
        merge(piece, ids);
        found->second.count = ids.size() - found->second.begin;
        return;
      }
      const size_t at = ids.size(), count = found->second.count;
      ids.resize(at + count);
      std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(found->second.begin), count,
                  ids.begin() + static_cast<std::ptrdiff_t>(at));
    });
    return ids;
  }
  std::string_view piece(int32_t id) const override {
    return id >= 0 && id < size() ? std::string_view(pieces_[static_cast<size_t>(id)]) : std::string_view();
  }

 private:
  /// Appends the tokens of a piece to `ids`. Merges the bytes of the piece in the order in which the merges
  /// were learned.
  void merge(std::string_view piece, std::vector<int32_t>& ids) const {
    std::vector<int32_t> tokens;
    for (const char c : piece) tokens.push_back(static_cast<unsigned char>(c));
    for (;;) {
      int32_t least = std::numeric_limits<int32_t>::max();
      for (size_t i = 0; i + 1 < tokens.size(); ++i)
        if (const auto found = merged_.find(merge_key(tokens[i], tokens[i + 1])); found != merged_.end())
          least = std::min(least, found->second);
      if (least == std::numeric_limits<int32_t>::max()) break;
      merge_pair(tokens, learned().merges[static_cast<size_t>(least - kByteTokens)], least);
    }
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }

  std::vector<std::string> pieces_;               // bytes of each token
  std::unordered_map<uint64_t, int32_t> merged_;  // maps merge_key(pair) to the token that replaces the pair
};

}  // namespace

void for_each_piece(std::string_view text, const std::function<void(std::string_view)>& visit) {
  for (size_t at = 0; at < text.size();) {
    const size_t blanks = end_of_run(text, at, CharKind::space);
    const bool joins = blanks > at && blanks < text.size() && text[blanks - 1] == ' ';
    const size_t begin = blanks - (joins ? 1 : 0);
    visit_in_parts(text.substr(at, begin - at), visit);
    at = blanks == text.size() ? blanks : end_of_run(text, blanks, kind_of(text[blanks]));
    visit_in_parts(text.substr(begin, at - begin), visit);
  }
}

std::string_view byte_piece(unsigned char byte) {
  static const std::array<char, 256> bytes = [] {
    std::array<char, 256> all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
    return all;
  }();
  return {bytes.data() + byte, 1};
}

std::shared_ptr<const Tokenizer> bpe_tokenizer(const LearnedTokens& learned) {
  return std::make_shared<BpeTokenizer>(learned);
}

}  // namespace dtrain
