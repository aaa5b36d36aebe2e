#include "config/diagnostics.h"

#include <algorithm>

#include "support.h"

namespace dtrain {

namespace {

Mark at(const std::string& file, int line, int column) {
  return {std::make_shared<const std::string>(file), line, column};
}

const std::vector<std::string> kWords = {"kernel_size", "strides", "padding", "filters"};

}  // namespace

TEST_CASE("a mark names file, line and column") {
  CHECK(at("a.yaml", 14, 7).str() == "a.yaml:14:7");
  CHECK(at("--set a=1", 0, 0).str() == "--set a=1");
  CHECK(Mark{}.str() == "");
}

TEST_CASE("messages come in the order of the places, each once") {
  Diagnostics diagnostics;
  CHECK_FALSE(diagnostics.has_errors());
  diagnostics.throw_if_errors();
  diagnostics.error(at("b", 10, 1), "third");
  diagnostics.error(at("b", 9, 5), "second");
  diagnostics.error(at("a", 1, 1), "in another file");
  diagnostics.error(at("b", 9, 2), "first");
  diagnostics.error(at("b", 9, 5), "second");
  CHECK(messages(diagnostics) ==
        "b:9:2: error: first\nb:9:5: error: second\nb:10:1: error: third\na:1:1: error: in another file");
}

TEST_CASE("at most a hundred lines, and how many more") {
  Diagnostics diagnostics;
  for (int i = 1; i <= 130; ++i) diagnostics.error(at("a", i, 1), "no");
  const std::string text = messages(diagnostics);
  CHECK(std::count(text.begin(), text.end(), '\n') == 100);
  CHECK(text.ends_with("a:100:1: error: no\n... and 30 more"));
}

TEST_CASE("a near word is suggested, a far one is not") {
  CHECK(suggestion("kernal_size", kWords) == "; did you mean 'kernel_size'?");
  CHECK(suggestion("stride", kWords) == "; did you mean 'strides'?");
  CHECK(suggestion("paddign", kWords) == "; did you mean 'padding'?");
  CHECK(suggestion("activation", kWords) == "");
  CHECK(suggestion("", kWords) == "");
  CHECK(suggestion("x", std::vector<std::string>{"y"}) == "");
  CHECK(suggestion_or_list("zzz", std::vector<std::string>{"same", "valid"}) ==
        "; expected one of same, valid");
}

}  // namespace dtrain
