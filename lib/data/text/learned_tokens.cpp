#include "data/text/learned_tokens.h"

#include "base/error.h"
#include "data/enum_json.h"

namespace dtrain {

int64_t LearnedTokens::size() const {
  return kind == TokenKind::words ? kFirstWord + static_cast<int64_t>(words.size())
                                  : kByteTokens + static_cast<int64_t>(merges.size());
}

Json LearnedTokens::to_json() const {
  Json json = Json::object().set("tokens", enum_text(kind));
  if (kind == TokenKind::words) {
    Json all = Json::array();
    for (const std::string& word : words) all.push(word);
    json.set("standardize", enum_text(standardize)).set("words", std::move(all));
  }
  if (kind == TokenKind::bpe) {
    Json all = Json::array();  // first and second id of each merge, in one flat list
    for (const auto& [first, second] : merges) all.push(int64_t{first}).push(int64_t{second});
    json.set("merges", std::move(all));
  }
  return json;
}

LearnedTokens LearnedTokens::from_json(const Json& json) {
  LearnedTokens learned;
  learned.kind = enum_from<TokenKind>(json.at("tokens"));
  if (learned.kind == TokenKind::words) {
    learned.standardize = enum_from<TextStandardization>(json.at("standardize"));
    for (const Json& word : json.at("words").items()) learned.words.push_back(word.as_string());
  }
  if (learned.kind != TokenKind::bpe) return learned;
  const auto& ids = json.at("merges").items();
  if (ids.size() % 2 != 0)
    throw UserError("expected two tokens in each merge of the bpe vocabulary, found one in the last merge");
  for (size_t i = 0; i < ids.size(); i += 2) {
    const int64_t first = ids[i].as_int(), second = ids[i + 1].as_int();
    if (first < 0 || second < 0 || first >= learned.size() || second >= learned.size())
      throw UserError("a merge of the bpe vocabulary refers to a token that does not exist");
    learned.merges.emplace_back(static_cast<int32_t>(first), static_cast<int32_t>(second));
  }
  return learned;
}

}  // namespace dtrain
