// Text columns of tables. Each text is converted to the ids of its tokens.
#include <doctest/doctest.h>

#include "data/csv_run.h"
#include "data/readers/reader.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
using Words = std::vector<std::string>;

const TensorSpec kReview{"tokens", {3}, DType::int32};
const std::string kReviews =
    "id,review,label\n"
    "1,\"Good, very good!\",yes\n"
    "2,bad,no\n"
    "3,\"not bad, not good\",yes\n";
const std::string kWords =
    "header: true, target: label, text: {review: {tokens: words, vocabulary: 5, length: 3}}";

}  // namespace

TEST_CASE_FIXTURE(Run, "text: if there is one input and one text column, the input reads this column") {
  const auto data = train(kReviews, kWords, {kReview});
  const LearnedTokens learned = data->facts().source.tokens.at("review");
  // "good" occurs three times, the other words occur twice.
  CHECK(learned.words == Words{"good", "not", "bad"});
  CHECK(read_all(*data, 0) == Values{2, 1, 2, 4, 0, 0, 3, 4, 3});
  CHECK(read_all(*data, 1) == Values{1, 0, 1});
  CHECK(data->facts().source.class_names.at("target") == Words{"no", "yes"});
  CHECK(data->facts().source.fields.inputs == Words{"review"});
  // Other files are read with the vocabulary of the run. In these files, the column of text may be anywhere.
  CHECK(read_all(*predict("x,review\n1,GOOD\n2,fine\n"), 0) == Values{2, 0, 0, 1, 0, 0});
  CHECK(read_all(*validate("label,review\nno,not good\n", kWords), 0) == Values{3, 2, 0});
  CHECK(read_all(*predict("{\"review\": \"bad\"}\n{\"review\": \"good bad\"}\n"), 0) ==
        Values{4, 0, 0, 2, 4, 0});
  write_file(folder / "lines.txt", "bad, not good at all\ngood\n");
  CHECK(read_all(*open_inputs(given(folder / "lines.txt"), spec, inputs, {}), 0) == Values{4, 3, 2, 2, 0, 0});
  // A run keeps its vocabulary.
  write_file(folder / "train.csv", "id,review,label\n1,other words,yes\n2,bad,no\n");
  CHECK(read_all(*resume(kWords), 0) == Values{1, 1, 0, 4, 0, 0});
  CHECK(contains(error_of([&] {
                   resume("header: true, target: label, text: {review: {tokens: bpe, vocabulary: 300}}");
                 }),
                 "a vocabulary for 'review' with 5 tokens"));
}

TEST_CASE_FIXTURE(Run, "text: bytes and bpe, with and without a header") {
  CHECK(read_all(*train("ab,0\nabc,1\n", "target: -1, text: {0: {}}", {kReview}), 0) ==
        Values{'a', 'b', 0, 'a', 'b', 'c'});
  CHECK(read_all(*predict("12\n"), 0) == Values{'1', '2', 0});
  const auto bpe =
      train("ab,0\nabc,1\n", "target: -1, text: {0: {tokens: bpe, vocabulary: 300, length: 3}}", {kReview});
  CHECK(bpe->facts().source.tokens.at("0").merges == std::vector<TokenMerge>{{'a', 'b'}});
  CHECK(read_all(*bpe, 0) == Values{256, 0, 0, 256, 'c', 0});
  CHECK(read_all(*predict("xab\n"), 0) == Values{'x', 256, 0});
}

TEST_CASE_FIXTURE(Run, "text: a text column and other inputs") {
  const std::vector<TensorSpec> both{{"numbers", {2}}, {"review", {2}, DType::int32}};
  const auto data =
      train("a,review,b,y\n1,hi,2,0\n3,ho,4,1\n", "header: true, target: y, text: {review: {}}", both);
  CHECK(read_all(*data, 0) == Values{1, 2, 3, 4});
  CHECK(read_all(*data, 1) == Values{'h', 'i', 'h', 'o'});
  CHECK(read_all(*predict("review,b,a\nok,6,5\n"), 0) == Values{5, 6});
  CHECK(read_all(*predict("review,b,a\nok,6,5\n"), 1) == Values{'o', 'k'});
  const std::vector<TensorSpec> named{{"numbers", {2}}, {"words", {2}, DType::int32}};
  CHECK(read_all(*train("a,review,b,y\n1,hi,2,0\n",
                        "header: true, target: y, text: {review: {}}, inputs: {words: review}", named),
                 1) == Values{'h', 'i'});
  const auto two = train("a,b,y\nhi,ho,0\n", "header: true, target: y, text: {a: {}, b: {length: 1}}",
                         {{"b", {1}, DType::int32}, {"x", {2}, DType::int32}});
  CHECK(read_all(*two, 0) == Values{'h'});
  CHECK(read_all(*two, 1) == Values{'h', 'i'});
  CHECK(read_all(*predict("b,a\nq,rs\n"), 1) == Values{'r', 's'});
}

TEST_CASE_FIXTURE(Run, "text: token_ids() returns the number of token ids for an input of tokens") {
  train(kReviews, kWords, {kReview});
  CHECK(spec.train->reader->token_ids({kReview}) == std::vector<std::optional<int64_t>>{5});
  CHECK(spec.train->reader->token_ids({{"numbers", {2}}, kReview}) ==
        std::vector<std::optional<int64_t>>{std::nullopt, 5});
}

TEST_CASE_FIXTURE(Run, "text: mistakes are reported with their locations") {
  const std::string text = "header: true, target: label, text: ";
  CHECK(contains(error("review,label\nfine,0\nd\xe9j\xe0,1\n",
                       text + "{review: {tokens: words, vocabulary: 9}}", {kReview}),
                 "train.csv:3:1: expected text in UTF-8 in the column 'review', found"));
  CHECK(error("review,label\nfine,0\nd\xe9j\xe0,1\n", text + "{review: {tokens: bytes}}", {kReview}).empty());
  CHECK(contains(error(kReviews, text + "{reviews: {}}", {kReview}), "expected a column named 'reviews'"));
  CHECK(contains(error(kReviews, text + "{review: {}}", {{"x", {3}}}),
                 "no input of the model reads the column 'review'"));
  CHECK(contains(error(kReviews, text + "{review: {}}, inputs: {x: review}", {{"x", {3}}}),
                 "must have the dtype int32"));
  CHECK(contains(error(kReviews, text + "{review: {}}, inputs: {tokens: [review, id]}", {kReview}),
                 "consists of the tokens of the column 'review'"));
  CHECK(contains(error(kReviews, text + "{review: {}}, categories: [review]", {kReview}),
                 "in both 'text' and 'categories'"));
  CHECK(contains(error(kReviews, text + "{review: {tokens: words}}", {kReview}), "need a vocabulary size"));
  CHECK(contains(error(kReviews, text + "{review: {}}", {{"x", {3, 2}, DType::int32}}), "give 'length'"));
}

}  // namespace dtrain::test
