// Tests that stop texts are found in generated text that arrives in parts.
#include "generate/stop_texts.h"

#include <doctest/doctest.h>

namespace dtrain::test {

namespace {

/// Passes a text to StopTexts in parts of `step` bytes. Returns the output before the first stop text.
std::string passed(const std::vector<std::string>& stops, const std::string& text, size_t step) {
  StopTexts found(stops);
  std::string out;
  for (size_t at = 0; at < text.size() && !found.found(); at += step) out += found.add(text.substr(at, step));
  return out + found.finish();
}

}  // namespace

TEST_CASE("a text ends before the first stop text, however it is divided") {
  for (const size_t step : {1, 2, 3, 100}) {
    CAPTURE(step);
    CHECK(passed({"END"}, "one END two", step) == "one ");
    CHECK(passed({"END"}, "one EN", step) == "one EN");
    CHECK(passed({"aab"}, "aaab", step) == "a");
    CHECK(passed({"abc", "b"}, "xabc", step) == "xa");
    CHECK(passed({"bc", "abc"}, "xabc", step) == "x");
    CHECK(passed({"\xc3\xa9"}, "caf\xc3\xa9s", step) == "caf");
    CHECK(passed({}, "text", step) == "text");
  }
}

TEST_CASE("only the possible beginning of a stop text is held back") {
  StopTexts stops({"\n\n"});
  CHECK(stops.add("a line\n") == "a line");
  CHECK(stops.add("next") == "\nnext");
  CHECK(!stops.found());
  CHECK(stops.add("\n\nand more") == "");
  CHECK(stops.found());
  CHECK(stops.finish() == "");
}

}  // namespace dtrain::test
