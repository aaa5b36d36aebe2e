// Tokenizers: the ids of tokens, learning of vocabularies, encoding, and decoding.
#include <algorithm>
#include <array>
#include <map>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/utf8.h"
#include "data/support.h"
#include "data/text/bpe.h"
#include "data/text/make_tokenizer.h"
#include "data/text/token_counts.h"
#include "data/text/words.h"

namespace dtrain::test {

namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;

TokenOptions options(TokenKind kind, int64_t vocabulary,
                     std::optional<TextStandardization> standardize = {}) {
  return {kind, vocabulary, standardize};
}

std::shared_ptr<const Tokenizer> learn(const TokenOptions& options, const Texts& texts) {
  TokenCounts counts(options);
  for (const std::string& text : texts) counts.add(text);
  return make_tokenizer(counts.learn("text"));
}

Texts words_of(std::string_view text, TextStandardization standardize) {
  Texts words;
  for_each_word(text, standardize, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Texts pieces_of(std::string_view text) {
  Texts pieces;
  for_each_piece(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

std::string random_bytes(std::mt19937& random, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += static_cast<char>(random() % 256);
  return text;
}

/// Returns text with characters from all planes of Unicode, separated by spaces.
std::string random_utf8(std::mt19937& random, size_t characters) {
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    constexpr std::array<uint32_t, 4> kFirst{0x20, 0xc0, 0x4e00, 0x1f600};
    append_utf8(text, kFirst[random() % kFirst.size()] + static_cast<uint32_t>(random() % 40));
    if (random() % 5 == 0) text += "  \n"[random() % 3];
  }
  return text;
}

}  // namespace

TEST_CASE("bytes: the ids of tokens are the bytes of the text") {
  const auto bytes = make_tokenizer({});
  CHECK(bytes->size() == 256);
  CHECK(bytes->encode("a\xff") == Ids{97, 255});
  CHECK(bytes->decode(Ids{104, 105, 10}) == "hi\n");
  CHECK(bytes->decode(Ids{-1, 256, 65}) == "A");
}

TEST_CASE("words: standardized as in Keras") {
  const std::string text = "It's \t fine,\nISN'T - it? \xc3\x84";
  CHECK(words_of(text, TextStandardization::lower_and_strip_punctuation) ==
        Texts{"its", "fine", "isnt", "it", "\xc3\x84"});
  CHECK(words_of(text, TextStandardization::lower) ==
        Texts{"it's", "fine,", "isn't", "-", "it?", "\xc3\x84"});
  CHECK(words_of(text, TextStandardization::strip_punctuation) ==
        Texts{"Its", "fine", "ISNT", "it", "\xc3\x84"});
  CHECK(words_of(text, TextStandardization::none) == Texts{"It's", "fine,", "ISN'T", "-", "it?", "\xc3\x84"});
  CHECK(words_of(" \r\n", TextStandardization::none).empty());
}

TEST_CASE("words: the most frequent have the smallest ids") {
  const auto words = learn(options(TokenKind::words, 6), {"b a c a", "C d b a e"});
  // The word a occurs 3 times, b and c occur 2 times, and d and e once. As in Keras, words with equal counts
  // are sorted in descending alphabetical order.
  CHECK(words->learned().words == Texts{"a", "c", "b", "e"});
  CHECK(words->size() == 6);
  CHECK(words->encode("a! b d c") == Ids{2, 4, 1, 3});
  CHECK(words->decode(Ids{2, 1, 0, 3, 99}) == "a [UNK] c");
  CHECK(contains(error_of([] {
                   learn(options(TokenKind::words, 9), {" ", "..."});
                 }),
                 "expected a text with words"));
}

TEST_CASE("bpe: the pieces together are the text, and no piece splits a character") {
  CHECK(pieces_of("Hello, it is  2026!\n\n  ok ") ==
        Texts{"Hello", ",", " it", " is", " ", " 2026", "!", "\n\n ", " ok", " "});
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    const std::string text = random_utf8(random, 400);
    std::string all;
    for (const std::string& piece : pieces_of(text)) {
      CHECK(is_utf8(piece));
      CHECK(piece.size() <= kMostPieceBytes);
      all += piece;
    }
    CHECK(all == text);
  }
  CHECK(pieces_of(std::string(130, '\x80')).size() == 3);  // the bytes are not UTF-8
}

TEST_CASE("bpe: merges of a small example") {
  const TextCounts counts{{"hug", 10}, {"pug", 5}, {"pun", 12}, {"bun", 4}, {"hugs", 5}};
  const std::vector<TokenMerge> merges = learn_merges(counts, 4);
  // Counts of the pairs of characters: "ug" occurs 20 times, "un" 16 times, "h" with "ug" 15 times, and "p"
  // with "un" 12 times.
  CHECK(merges == std::vector<TokenMerge>{{'u', 'g'}, {'u', 'n'}, {'h', 256}, {'p', 257}});
  const auto bpe = make_tokenizer({TokenKind::bpe, TextStandardization::none, {}, merges});
  CHECK(bpe->encode("hugs") == Ids{258, 's'});
  CHECK(bpe->encode("pun hug") == Ids{259, ' ', 258});
  CHECK(bpe->piece(258) == "hug");
  // No second merge, because the pair (aa, aa) occurs only once.
  CHECK(learn_merges({{"aaaa", 1}}, 9) == std::vector<TokenMerge>{{'a', 'a'}});
  CHECK(learn_merges({{"ab", 1}}, 9).empty());
  // If several pairs are equally frequent, the pair with the smallest ids is merged first.
  CHECK(learn_merges({{"cd", 2}, {"ab", 2}, {"ac", 2}}, 2) ==
        std::vector<TokenMerge>{{'a', 'b'}, {'a', 'c'}});
}

TEST_CASE("bpe: updating the counts of pairs gives the same merges as counting all pairs again") {
  std::mt19937 random(2);
  TextCounts counts;
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (size_t n = 1 + random() % 12; n > 0; --n) text += static_cast<char>('a' + random() % 3);
    counts[text] += static_cast<int64_t>(1 + random() % 4);
  }
  std::vector<std::pair<Ids, int64_t>> pieces;
  for (const auto& [text, times] : counts) pieces.emplace_back(Ids(text.begin(), text.end()), times);
  std::vector<TokenMerge> expected;
  while (expected.size() < 60) {
    std::map<TokenMerge, int64_t> pairs;
    for (const auto& [tokens, times] : pieces)
      for (size_t i = 0; i + 1 < tokens.size(); ++i) pairs[{tokens[i], tokens[i + 1]}] += times;
    const auto best = std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
      return a.second < b.second;  // for equal counts, max_element() returns the pair with the smallest ids
    });
    if (best == pairs.end() || best->second < 2) break;
    const auto [first, second] = best->first;
    const auto merged = static_cast<int32_t>(256 + expected.size());
    expected.push_back(best->first);
    for (auto& [tokens, times] : pieces) {
      Ids now;
      for (size_t i = 0; i < tokens.size(); ++i) {
        const bool is_pair = i + 1 < tokens.size() && tokens[i] == first && tokens[i + 1] == second;
        now.push_back(is_pair ? merged : tokens[i]);
        if (is_pair) ++i;
      }
      tokens = now;
    }
  }
  CHECK(expected.size() > 20);
  CHECK(learn_merges(counts, 60) == expected);
}

TEST_CASE("bpe: any text is decoded exactly, and the order of texts does not matter") {
  std::mt19937 random(3);
  Texts texts;
  for (int i = 0; i < 20; ++i) texts.push_back(random_utf8(random, 300));
  const TokenOptions wanted = options(TokenKind::bpe, 400);
  const auto bpe = learn(wanted, texts);
  CHECK(bpe->size() == 400);
  std::reverse(texts.begin(), texts.end());
  CHECK(learn(wanted, texts)->learned() == bpe->learned());
  TokenCounts parts(wanted);
  for (const std::string& text : texts) {
    TokenCounts one(wanted);
    one.add(text);
    parts.merge(one);
  }
  CHECK(parts.learn("") == bpe->learned());
  for (int i = 0; i < 50; ++i)
    for (const std::string& text : {random_bytes(random, 500), random_utf8(random, 200), std::string()}) {
      const Ids ids = bpe->encode(text);
      CHECK(bpe->decode(ids) == text);
      CHECK(ids.size() <= text.size());
    }
  CHECK(bpe->encode(texts[0]).size() < 2 * texts[0].size() / 3);
}

TEST_CASE("decoding a stream of tokens gives whole characters") {
  const auto bytes = make_tokenizer({});
  const auto stream_of = [&](std::string_view text) {
    TokenStream stream(bytes);
    Texts parts;
    for (const char c : text) parts.push_back(stream.add(static_cast<unsigned char>(c)));
    parts.push_back(stream.finish());
    return parts;
  };
  CHECK(stream_of("a\xc3\xa4") == Texts{"a", "", "\xc3\xa4", ""});
  CHECK(stream_of("\xe2\x82") == Texts{"", "", "\xef\xbf\xbd\xef\xbf\xbd"});
  CHECK(stream_of("\x80"
                  "b") == Texts{"\xef\xbf\xbd", "b", ""});
  CHECK(stream_of("\xc3"
                  "b") == Texts{"",
                                "\xef\xbf\xbd"
                                "b",
                                ""});
  std::mt19937 random(4);
  const std::string text = random_utf8(random, 500);
  std::string all;
  for (const std::string& part : stream_of(text)) {
    CHECK(is_utf8(part));
    all += part;
  }
  CHECK(all == text);
  TokenStream words(learn(options(TokenKind::words, 9), {"b a a"}));
  CHECK(words.add(2) == "a");
  CHECK(words.add(0).empty());
  CHECK(words.add(3) == " b");
}

TEST_CASE("rows of tokens are truncated and padded") {
  Ids row(4, 9);
  put_tokens(*make_tokenizer({}), "abcdef", row);
  CHECK(row == Ids{97, 98, 99, 100});
  put_tokens(*make_tokenizer({}), "a", row);
  CHECK(row == Ids{97, 0, 0, 0});
}

TEST_CASE("vocabularies are stored as JSON") {
  const Texts texts{"the cat sat on the mat", "the dog"};
  for (const TokenOptions& one : {TokenOptions{}, options(TokenKind::words, 5, TextStandardization::lower),
                                  options(TokenKind::bpe, 260)}) {
    const LearnedTokens learned = learn(one, texts)->learned();
    CHECK(LearnedTokens::from_json(Json::parse(learned.to_json().dump())) == learned);
    DataFacts facts;
    facts.source.tokens["text"] = learned;
    CHECK(DataFacts::from_json(facts.to_json()) == facts);
    CHECK(tokenizer_of(facts)->learned() == learned);
  }
  CHECK(contains(error_of([] { tokenizer_of({}); }), "not trained on text"));
  const auto wrong = [](const std::string& json) {
    return error_of([&] { make_tokenizer(LearnedTokens::from_json(Json::parse(json))); });
  };
  CHECK(contains(wrong(R"({"tokens": "bpe", "merges": [97, 256]})"), "does not exist"));
  CHECK(contains(wrong(R"({"tokens": "bpe", "merges": [97, -1]})"), "does not exist"));
  CHECK(contains(wrong(R"({"tokens": "bpe", "merges": [97, 98, 99]})"), "expected two"));
  CHECK(contains(wrong(R"({"tokens": "letters"})"), "expected one of "));
  std::string doubling = R"({"tokens": "bpe", "merges": [97, 97)";
  for (int i = 256; i < 300; ++i) doubling += fmt::format(", {0}, {0}", i);
  CHECK(contains(wrong(doubling + "]}"), "more than 64 bytes"));
}

}  // namespace dtrain::test
