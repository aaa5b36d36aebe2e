// Tests generated texts. The model is a plain function of the previous token.
#include "generate/generate_texts.h"

#include <map>

#include <doctest/doctest.h>

#include "data/text/make_tokenizer.h"
#include "support/errors.h"

namespace dtrain::test {

namespace {

LanguageModel byte_model() {
  return {.tokenizer = make_tokenizer({}), .positions = 8, .columns = kByteTokens};
}

std::shared_ptr<const Tokenizer> yes_and_no() {
  LearnedTokens learned;
  learned.kind = TokenKind::words;
  learned.standardize = TextStandardization::lower;
  learned.words = {"yes", "no"};
  return make_tokenizer(learned);
}

/// A model that always prefers the next letter of the alphabet. The letter after "z" is "a".
class Alphabet final : public NextToken {
 public:
  std::span<const float> scores(std::span<const std::vector<int32_t>> texts) override {
    calls_.push_back(texts.size());
    scores_.assign(texts.size() * static_cast<size_t>(kByteTokens), 0);
    for (size_t i = 0; i < texts.size(); ++i) {
      const int32_t last = texts[i].back();
      scores_[i * static_cast<size_t>(kByteTokens) + static_cast<size_t>(last == 'z' ? 'a' : last + 1)] = 5;
    }
    return scores_;
  }
  const std::vector<size_t>& calls() const { return calls_; }

 private:
  std::vector<float> scores_;
  std::vector<size_t> calls_;
};

class Parts final : public TextObserver {
 public:
  bool goes_on() override { return left-- != 0; }
  void add(size_t text, std::string_view part) override { texts[text] += part; }
  void end(size_t text) override { ends.push_back(text); }

  int left = -1;
  std::map<size_t, std::string> texts;
  std::vector<size_t> ends;
};

std::vector<int32_t> ids(std::string_view text) {
  return {text.begin(), text.end()};
}

}  // namespace

TEST_CASE("greedy texts continue their prompts") {
  const LanguageModel model = byte_model();
  Alphabet next;
  Parts parts;
  const std::vector<std::vector<int32_t>> prompts = {ids("ab"), ids("x"), ids("m")};
  const GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 4, .stops = {"z"}};
  const auto texts = generate_texts(model, next, prompts, options, 2, parts);
  REQUIRE(texts.size() == 3);
  CHECK(texts[0].text == "cdef");
  CHECK(texts[0].end == TextEnd::max_tokens);
  CHECK(texts[1].text == "y");
  CHECK(texts[1].tokens == ids("yz"));
  CHECK(texts[1].end == TextEnd::stop);
  CHECK(texts[2].text == "nopq");
  CHECK(parts.texts == std::map<size_t, std::string>{{0, "cdef"}, {1, "y"}, {2, "nopq"}});
  CHECK(parts.ends == std::vector<size_t>{1, 0, 2});
  // The last batch has only one text and is filled up to two texts.
  CHECK(next.calls() == std::vector<size_t>(8, 2));
}

TEST_CASE("a text does not depend on the other texts") {
  const LanguageModel model = byte_model();
  Alphabet next;
  Parts parts;
  const GenerateOptions options{.sampling = {.temperature = 2, .seed = 3}, .max_tokens = 30, .samples = 3};
  const std::vector<std::vector<int32_t>> prompts = {ids("a"), ids("a")};
  const auto all = generate_texts(model, next, prompts, options, 4, parts);
  for (const int64_t at_once : {1, 5}) {
    const auto again = generate_texts(model, next, prompts, options, at_once, parts);
    for (size_t i = 0; i < all.size(); ++i) CHECK(again[i].tokens == all[i].tokens);
  }
  CHECK(all[0].tokens != all[1].tokens);
  CHECK(all[0].tokens != all[3].tokens);  // a prompt gives another text at another index
  const auto one = generate_texts(model, next, std::span(prompts).first(1), {options.sampling, 30}, 1, parts);
  CHECK(one[0].tokens == all[0].tokens);
}

TEST_CASE("an observer ends all texts") {
  const LanguageModel model = byte_model();
  Alphabet next;
  Parts parts;
  parts.left = 3;
  const std::vector<std::vector<int32_t>> prompts = {ids("a"), ids("k")};
  const auto texts = generate_texts(model, next, prompts, {.sampling = {.temperature = 0}}, 1, parts);
  CHECK(texts[0].text == "bcd");
  CHECK(texts[1].text == "");
}

TEST_CASE("words are separated from the prompt, and padding is never drawn") {
  const LanguageModel model{.tokenizer = yes_and_no(), .positions = 4, .columns = 6};
  class Padding final : public NextToken {
   public:
    std::span<const float> scores(std::span<const std::vector<int32_t>>) override { return scores_; }

   private:
    // Id 0 is padding, and the ids 4 and 5 are not in the vocabulary.
    std::vector<float> scores_ = {9, 0, 1, 2, 8, 8};
  } next;
  Parts parts;
  const std::vector<std::vector<int32_t>> prompts = {{2}};
  const auto texts =
      generate_texts(model, next, prompts, {.sampling = {.temperature = 0}, .max_tokens = 2}, 1, parts);
  CHECK(texts[0].text == " no no");
}

TEST_CASE("prompts") {
  const auto bytes = make_tokenizer({});
  CHECK(encode_prompt(*bytes, "hi\xff", "--prompt") == std::vector<int32_t>{'h', 'i', 255});
  const auto words = yes_and_no();
  CHECK(encode_prompt(*words, "No  yes", "--prompt") == std::vector<int32_t>{3, 2});
  CHECK(error_of([&] {
          encode_prompt(*words, "yes maybe", "a.txt");
        }).starts_with("a.txt: the word 'maybe' is not in the vocabulary of the run, which has 2 words"));
  CHECK(error_of([&] { encode_prompt(*words, " \n", "--prompt"); }) ==
        "--prompt: the text has no tokens; give at least one word to continue");
  CHECK(error_of([&] {
          encode_prompt(*words, "yes\xff", "--prompt");
        }).starts_with("--prompt: the text is not UTF-8"));
}

TEST_CASE("the window drops its older half when it is full") {
  const std::vector<int64_t> expected = {0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8};
  for (size_t i = 1; i < expected.size(); ++i) CHECK(window_begin(static_cast<int64_t>(i), 8) == expected[i]);
  for (int64_t tokens = 1; tokens < 40; ++tokens)
    for (const int64_t positions : {1, 2, 3, 7}) {
      const int64_t seen = tokens - window_begin(tokens, positions);
      CHECK(seen >= 1);
      CHECK(seen <= positions);
    }
}

}  // namespace dtrain::test
