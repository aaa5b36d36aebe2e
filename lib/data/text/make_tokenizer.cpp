#include "data/text/make_tokenizer.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/enum_json.h"
#include "data/text/bpe.h"
#include "data/text/words.h"

namespace dtrain {

namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(const LearnedTokens& learned) : Tokenizer(learned) {}

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::string_view piece(int32_t id) const override {
    return id >= 0 && id < kByteTokens ? byte_piece(static_cast<unsigned char>(id)) : std::string_view();
  }
};

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer(const LearnedTokens& learned) {
  if (learned.kind == TokenKind::words) return word_tokenizer(learned);
  if (learned.kind == TokenKind::bpe) return bpe_tokenizer(learned);
  return std::make_shared<ByteTokenizer>(learned);
}

std::shared_ptr<const Tokenizer> tokenizer_of(const DataFacts& facts) {
  const auto& all = facts.source.tokens;
  if (all.empty()) throw UserError("the run has no tokens, because it was not trained on text");
  for (const auto& [name, learned] : all)
    if (learned != all.begin()->second)
      throw UserError(
          "the run was trained on several texts with different vocabularies; expected one vocabulary");
  return make_tokenizer(all.begin()->second);
}

std::shared_ptr<const Tokenizer> known_tokenizer(const SourceFacts& facts, const std::string& name,
                                                 const TokenOptions& options) {
  const auto known = facts.tokens.find(name);
  if (known == facts.tokens.end()) return nullptr;
  const LearnedTokens& learned = known->second;
  const bool has_other_words =
      learned.kind == TokenKind::words && learned.standardize != options.standardize_words();
  if (learned.kind != options.tokens || learned.size() > options.ids() || has_other_words)
    throw UserError(fmt::format(
        "tokens: the checkpoint stores a vocabulary for '{}' with {} tokens ({}{}); use the same options for "
        "tokens, or start a new run that learns its own vocabulary",
        name, learned.size(), enum_text(learned.kind),
        learned.kind == TokenKind::words ? ", standardize: " + enum_text(learned.standardize) : ""));
  return make_tokenizer(learned);
}

void check_has_vocabulary(const SourceFacts& facts, const std::vector<std::string>& texts) {
  const auto is_known = [&](const std::string& text) { return facts.tokens.contains(text); };
  if (facts.tokens.empty() || std::any_of(texts.begin(), texts.end(), is_known)) return;
  std::vector<std::string> known;
  for (const auto& [name, learned] : facts.tokens) known.push_back(fmt::format("'{}'", name));
  throw UserError(
      fmt::format("the checkpoint stores vocabularies for {}, but this data set has text only in '{}'; "
                  "use the same names as in the run that wrote the checkpoint",
                  fmt::join(known, ", "), fmt::join(texts, "', '")));
}

}  // namespace dtrain
