#include "data/text/words.h"

#include <unordered_map>

#include "base/ascii.h"

namespace dtrain {

namespace {

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

class WordTokenizer final : public Tokenizer {
 public:
  explicit WordTokenizer(const LearnedTokens& given) : Tokenizer(given) {
    int32_t id = kFirstWord;
    for (const std::string& word : learned().words) ids_.emplace(word, id++);
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for_each_word(text, learned().standardize, [&](std::string_view word) {
      const auto found = ids_.find(word);
      ids.push_back(found == ids_.end() ? kUnknownWord : found->second);
    });
    return ids;
  }
  std::string_view piece(int32_t id) const override {
    if (id == kUnknownWord) return "[UNK]";  // Keras's text for unknown words
    return id >= kFirstWord && id < size()
               ? std::string_view(learned().words[static_cast<size_t>(id - kFirstWord)])
               : std::string_view();
  }

 private:
  std::unordered_map<std::string_view, int32_t> ids_;  // ids of the words in learned()
};

}  // namespace

void for_each_word(std::string_view text, TextStandardization standardize,
                   const std::function<void(std::string_view word)>& visit) {
  const bool both = standardize == TextStandardization::lower_and_strip_punctuation;
  const bool lowers = both || standardize == TextStandardization::lower;
  const bool strips = both || standardize == TextStandardization::strip_punctuation;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) visit(word);
    word.clear();
  };
  for (const char c : text) {
    if (is_ascii_space(c))
      finish();
    else if (!strips || !is_ascii_punctuation(c))
      word += lowers && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  finish();
}

std::shared_ptr<const Tokenizer> word_tokenizer(const LearnedTokens& learned) {
  return std::make_shared<WordTokenizer>(learned);
}

}  // namespace dtrain
