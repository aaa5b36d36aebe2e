// The text reader: windows of text for language models, and folders of texts, one folder per class.
#include <numeric>

#include <doctest/doctest.h>

#include "data/columns/sample_forms.h"
#include "data/readers/reader.h"
#include "data/support.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
const TensorSpec kTokens{"tokens", {4}, DType::int32};
const TensorSpec kNext{"", {4}, DType::int32};
const TensorSpec kClass{"", {}, DType::int32};

std::shared_ptr<const Dataset> open(const TempDir& folder, const std::string& yaml,
                                    const char* split = "train", const TensorSpec& target = kNext,
                                    const DataFacts& facts = {}) {
  DatasetSpec spec = parse(folder, yaml);
  spec.facts = facts;
  return open_split(spec, *spec.find(split), {kTokens}, {target});
}

std::string open_error(const TempDir& folder, const std::string& yaml, const TensorSpec& target = kNext) {
  return error_of([&] { open(folder, yaml, "train", target); });
}

std::string letters(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

Values bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace

TEST_CASE("text: windows of tokens and the next tokens as targets") {
  const TempDir folder;
  folder.write("a.txt", letters(14));
  for (const std::string cache : {"none", "memory", "{file: kept}"}) {
    CAPTURE(cache);
    const auto data = open(folder, "train: {text: {file: a.txt, sequence_length: 4}}\ncache: " + cache);
    // Of 14 tokens, 13 are followed by another token. The thirteenth does not fill a window of four tokens,
    // and is left out.
    CHECK(data->size() == 3);
    CHECK(read_all(*data, 0) == bytes("abcdefghijkl"));
    CHECK(read_all(*data, 1) == bytes("bcdefghijklm"));
    CHECK(read_rows(*data, {2, 0}, 0) == bytes("ijklabcd"));
    CHECK(data->facts().source.tokens.at("tokens").kind == TokenKind::bytes);
  }
  const auto dense = open(folder, "train: {text: {file: a.txt, sequence_length: 4, stride: 3}}");
  CHECK(dense->size() == 4);
  CHECK(read_rows(*dense, {1, 3}, 1) == bytes("efghklmn"));
  const auto sparse = open(folder, "train: {text: {file: a.txt, sequence_length: 4, stride: 9}}");
  CHECK(sparse->size() == 2);
  CHECK(read_rows(*sparse, {1}, 0) == bytes("jklm"));
}

TEST_CASE("text: windows do not cross files") {
  const TempDir folder;
  folder.write("b/1.txt", "abcdefg");
  folder.write("b/2.txt", "short");  // exactly one window
  folder.write("b/3.txt", "tiny");
  folder.write("b/sub/4.txt", "");
  folder.write("b/sub/5.txt", "hijklmnop");
  write_gzip(folder / "b/sub/6.txt.gz", "packed");
  const auto data = open(folder, "train: {text: {directory: b, sequence_length: 4}}");
  CHECK(data->size() == 5);
  CHECK(read_all(*data, 0) == bytes("abcdshorhijklmnopack"));
  CHECK(read_all(*data, 1) == bytes("bcdehortijklmnopacke"));
  REQUIRE(data->warnings().size() == 1);
  CHECK(contains(data->warnings()[0], "2 of 6 files"));
  CHECK(contains(data->warnings()[0], "3.txt with 4 tokens"));
  const auto some = open(folder, "train: {text: {files: [b/sub/5.txt, \"b/[12].txt\"], sequence_length: 4}}");
  CHECK(read_all(*some, 0) == bytes("hijklmnoabcdshor"));
  // An empty file is left out as well, even if the list names it explicitly.
  const auto listed = open(folder, "train: {text: {files: [b/sub/4.txt, b/2.txt], sequence_length: 4}}");
  CHECK(read_all(*listed, 0) == bytes("shor"));
  REQUIRE(listed->warnings().size() == 1);
  CHECK(contains(listed->warnings()[0], "1 of 2 files"));
  CHECK(contains(listed->warnings()[0], "4.txt with 0 tokens"));
  CHECK(contains(open_error(folder, "train: {text: {file: b/sub/4.txt, sequence_length: 4}}"),
                 "4.txt: expected data, found an empty file"));
  CHECK(contains(open_error(folder, "train: {text: {files: [b/sub/4.txt], sequence_length: 4}}"),
                 "4.txt: expected at least 5 tokens"));
}

TEST_CASE("text: large files are read from the disk") {
  const TempDir folder;
  folder.write("a.txt", letters(2 << 20));
  const auto data = open(folder, "train: {text: {file: a.txt, sequence_length: 4}}");
  CHECK(!data->in_memory());
  CHECK(read_rows(*data, {200000}, 0) == bytes(letters(2 << 20).substr(800000, 4)));
}

TEST_CASE("text: words and bpe are learned from the training split") {
  const TempDir folder;
  folder.write("train.txt", "one two two three three three one two. ");
  folder.write("other.txt", "three four one four two one");
  const std::string yaml =
      "train: {text: {file: train.txt, sequence_length: 4, tokens: words, vocabulary: 5}}\n"
      "validation: {text: {file: other.txt, sequence_length: 4, tokens: words, vocabulary: 5}}";
  const auto train = open(folder, yaml);
  CHECK(train->facts().source.tokens.at("tokens").words == std::vector<std::string>{"two", "three", "one"});
  CHECK(read_all(*train, 0) == Values{4, 2, 2, 3});
  CHECK(read_all(*train, 1) == Values{2, 2, 3, 3});
  const auto validation = open(folder, yaml, "validation", kNext, train->facts());
  CHECK(read_all(*validation, 0) == Values{3, 1, 4, 1});
  CHECK(validation->facts() == train->facts());
  // A run keeps its vocabulary even if the training file changes.
  folder.write("train.txt", "new words only, and more of them");
  CHECK(read_all(*open(folder, yaml, "train", kNext, train->facts()), 0) == Values{1, 1, 1, 1});
  const std::string message = error_of([&] {
    open(folder, "train: {text: {file: train.txt, sequence_length: 4, tokens: bpe, vocabulary: 300}}",
         "train", kNext, train->facts());
  });
  CHECK(contains(message, "a vocabulary for 'tokens' with 5 tokens (words"));
  const auto bpe =
      open(folder, "train: {text: {file: other.txt, sequence_length: 4, tokens: bpe, vocabulary: 257}}");
  CHECK(bpe->facts().source.tokens.at("tokens").merges.size() == 1);
}

TEST_CASE("text: the vocabulary determines the classes of the next token") {
  const TempDir folder;
  folder.write("a.txt", letters(14));
  const auto classes = [&](const std::string& options) {
    const DatasetSpec spec = parse(folder, "train: {text: {file: a.txt, sequence_length: 4" + options + "}}");
    return training_forms(spec, {{"tokens", std::nullopt, DType::int32}}, {{"", std::nullopt, DType::int32}},
                          {})
        .classes;
  };
  CHECK(classes("") == std::vector<int64_t>{256});
  CHECK(classes(", tokens: bpe, vocabulary: 300") == std::vector<int64_t>{300});
}

TEST_CASE("text: the end of a text is used for the validation and test splits") {
  const TempDir folder;
  folder.write("a.txt", letters(81));
  const std::string drawn =
      "validation: {split: {of: train, fraction: 0.2}}\ntest: {split: {of: train, fraction: 0.1}}";
  const std::string plain = "train: {text: {file: a.txt, sequence_length: 4}}\n" + drawn;
  std::vector<int64_t> rows(14);
  std::iota(rows.begin(), rows.end(), 0);
  CHECK(open(folder, plain)->rows_in_files() == rows);
  CHECK(open(folder, plain, "validation")->rows_in_files() == std::vector<int64_t>{14, 15, 16, 17});
  CHECK(open(folder, plain, "test")->rows_in_files() == std::vector<int64_t>{18, 19});
  CHECK(!open(folder, plain)->facts().split_seed);
  CHECK(contains(open(folder, plain)->identity().drawn,
                 "left of 'train' by position: validation 0.2, test 0.1"));

  // Even if windows overlap, each target is in only one split.
  const std::string dense = "train: {text: {file: a.txt, sequence_length: 4, stride: 1}}\n" + drawn;
  CHECK(open(folder, dense)->size() == 77 - 8 - 15 - 3 - 3);
  CHECK(open(folder, dense, "validation")->rows_in_files().front() == 77 - 8 - 3 - 15);
  CHECK(open(folder, dense, "validation")->size() == 15);
  CHECK(open(folder, dense, "test")->rows_in_files().front() == 69);

  for (const std::string option : {"stratify: true", "seed: 3"})
    CHECK(contains(open_error(folder,
                              "train: {text: {file: a.txt, sequence_length: 4}}\n"
                              "validation: {split: {of: train, fraction: 0.2, " +
                                  option + "}}"),
                   "parts of one text"));
}

TEST_CASE("text: the vocabulary is learned only from the training part of a text") {
  const TempDir folder;
  folder.write("a.txt", "a b a b a b a b a b a b a b a b z z z z z z ");
  const auto words = [&](const std::string& more) {
    return open(folder,
                "train: {text: {file: a.txt, sequence_length: 4, tokens: words, vocabulary: 9}}" + more)
        ->facts()
        .source.tokens.at("tokens")
        .words;
  };
  CHECK(words("") == std::vector<std::string>{"b", "a", "z"});
  CHECK(words("\nvalidation: {split: {of: train, fraction: 0.4}}") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("text: a training part that ends within a text without spaces ends after a whole character") {
  const TempDir folder;
  std::string characters;
  for (int i = 0; i < 100; ++i) characters += "\u65e5";  // 3 bytes each
  folder.write("a.txt", characters);
  folder.write("b.txt", "x y x y x y x y x y x y");
  const auto data = open(folder,
                         "train: {text: {files: [a.txt, b.txt], sequence_length: 4, tokens: words, "
                         "vocabulary: 9}}\nvalidation: {split: {of: train, fraction: 0.5}}");
  // Half of the 323 bytes are 161 bytes, which are 53 characters and a part of another one.
  CHECK(data->facts().source.tokens.at("tokens").words == std::vector{characters.substr(0, 159)});
}

TEST_CASE("text: a folder of texts for each class") {
  const TempDir folder;
  folder.write("t/good/1.txt", "yes");
  folder.write("t/good/2.txt", "yes indeed");
  folder.write("t/bad/1.txt", "no");
  folder.write("t/README", "not a sample");
  const std::string yaml = "train: {text: {directory: t}}";
  const auto data = open(folder, yaml, "train", kClass);
  CHECK(data->size() == 3);
  CHECK(read_all(*data, 0) == Values{'n', 'o', 0, 0, 'y', 'e', 's', 0, 'y', 'e', 's', ' '});
  CHECK(read_all(*data, 1) == Values{0, 1, 1});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"bad", "good"});
  CHECK(data->sample_id(2) == "good/2.txt");
  CHECK(data->id_title() == "path");
  const auto named = open(folder,
                          "train: {text: {directory: t, class_names: [good, bad], tokens: words, "
                          "vocabulary: 100, length: 4}}",
                          "train", kClass);
  CHECK(read_all(*named, 1) == Values{1, 0, 0});
  CHECK(read_all(*named, 0) == Values{3, 0, 0, 0, 2, 0, 0, 0, 2, 4, 0, 0});

  // The texts for predictions are the lines of a file or the files of a folder.
  DatasetSpec spec = parse(folder, yaml);
  spec.facts = data->facts();
  const auto input = folder.write("new.txt", "maybe\r\n\nno");
  CHECK(read_all(*open_inputs(given(input), spec, {kTokens}, {}), 0) ==
        Values{'m', 'a', 'y', 'b', 0, 0, 0, 0, 'n', 'o', 0, 0});
  const auto files = open_inputs(given(folder / "t"), spec, {kTokens}, {});
  CHECK(files->size() == 4);
  CHECK(files->sample_id(0) == "README");
  const auto labeled = open_labeled(given(folder / "t"), spec, {kTokens}, {kClass}, {});
  CHECK(read_all(*labeled, 1) == Values{0, 1, 1});
  CHECK(contains(error_of([&] { open_inputs(given(input), spec, {kTokens}, {true, {}}); }), "plain text"));
}

TEST_CASE("text: a byte order mark is not part of the text") {
  const TempDir folder;
  folder.write("a.txt", "\xef\xbb\xbf" + letters(9));
  const auto data = open(folder, "train: {text: {file: a.txt, sequence_length: 4}}");
  CHECK(read_all(*data, 0) == bytes("abcdefgh"));
}

TEST_CASE("text: mistakes are reported with their locations") {
  const TempDir folder;
  folder.write("a.txt", "abcd");
  folder.write("latin.txt", "caf\xc3\xa9\nd\xe9j\xe0 vu, encore une fois");
  folder.write("t/good/1.txt", "d\xe9j\xe0");
  std::filesystem::create_directories(folder / "empty");
  const auto error = [&](const std::string& options) {
    return open_error(folder, "train: {text: {" + options + "}}");
  };
  CHECK(contains(
      error("file: a.txt, sequence_length: 4"),
      "a.txt: expected at least 5 tokens (sequence_length 4 and the target of the last token), found 4"));
  CHECK(contains(error("file: latin.txt, sequence_length: 4, tokens: words, vocabulary: 9"),
                 "latin.txt: expected text in UTF-8, found the byte 0xe9 at byte 7 (line 2)"));
  folder.write("wide.txt", std::string("\xff\xfe"
                                       "a\0b\0",
                                       6));
  CHECK(contains(error("file: wide.txt, sequence_length: 4, tokens: words, vocabulary: 9"),
                 "iconv -f utf-16 -t utf-8"));
  CHECK(error("file: latin.txt, sequence_length: 4, tokens: bpe, vocabulary: 300").empty());
  CHECK(contains(open_error(folder, "train: {text: {directory: t, tokens: words, vocabulary: 9}}", kClass),
                 "good/1.txt: expected text in UTF-8"));
  CHECK(contains(error("directory: empty, sequence_length: 4"), "found an empty folder"));
  CHECK(contains(error("directory: empty"), "expected one folder of texts per class"));
  CHECK(contains(error("file: a.txt"), "give 'sequence_length'"));
  CHECK(contains(error("file: a.txt, directory: t, sequence_length: 4"),
                 "give exactly one of 'file', 'files' and 'directory'"));
  CHECK(contains(error("directory: t, stride: 4"), "'stride' is for language models"));
  CHECK(contains(error("directory: t, length: 4, sequence_length: 4"), "remove the options of one kind"));
  CHECK(contains(error("file: a.txt, sequence_length: 4, vocabulary: 9"), "bytes always have 256 tokens"));
  CHECK(contains(error("file: a.txt, sequence_length: 4, tokens: words"), "need a vocabulary size"));
  CHECK(contains(error("file: a.txt, sequence_length: 4, tokens: words, vocabulary: 2"), "at least 3"));
  CHECK(contains(error("file: a.txt, sequence_length: 4, tokens: bpe, vocabulary: 256"), "at least 257"));
  CHECK(contains(error("file: a.txt, sequence_length: 4, standardize: lower"),
                 "applies only to `tokens: words`"));
  CHECK(contains(error("file: a.txt, sequence_length: 3, tokens: bytes"), "the data have 3 int32"));
}

}  // namespace dtrain::test
