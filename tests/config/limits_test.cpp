// Malicious configurations cause an error with a location within a short time, and never a crash. The time
// limits are long enough for sanitizers and busy machines, but much shorter than the time of a successful
// attack.
#include <chrono>

#include "support.h"

namespace dtrain::test {

namespace {

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string messages_within(double seconds, std::string_view text) {
  const auto start = std::chrono::steady_clock::now();
  std::string found = yaml_messages(text);
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds);
  return found;
}

}  // namespace

TEST_CASE("deep nesting is an error, not a stack overflow") {
  for (const char* open : {"[", "{", "- ", "[[{a: ", "? "})
    CHECK(messages_within(20, repeated(open, 100'000)).starts_with("f:1:"));
  CHECK(contains(messages_within(5, repeated("- ", 100'000)),
                 "expected at most 100 levels of nesting, found more"));
  CHECK(contains(yaml_messages(repeated("[", 101) + repeated("]", 101)),
                 "expected at most 100 levels of nesting, found more"));
  CHECK(yaml_messages(repeated("[", 100) + repeated("]", 100)) == "");
}

TEST_CASE("expanded aliases count towards the limit on values") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(last + ", ", 9) + last + "]\n";
  }
  CHECK(contains(messages_within(5, bomb),
                 "expected at most 1000000 values (expanded aliases are counted), found more"));
  // Merge keys can also expand a short text to very many values: each mapping contains several copies of the
  // previous mapping.
  std::string merged = "a0: &a0 {k: [x, x, x, x, x, x, x, x, x, x]}\n";
  for (int i = 1; i < 12; ++i) {
    const std::string one = "*a" + std::to_string(i - 1), four = one + ", " + one + ", " + one + ", " + one;
    merged +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " {<<: [" + four + "], l: [" + four + "]}\n";
  }
  CHECK(contains(messages_within(5, merged),
                 "expected at most 1000000 values (expanded aliases are counted), found more"));

  // An alias adds the depth of its list to the depth of the list that contains the alias.
  std::string chain = "a0: &a0 " + repeated("[", 60) + repeated("]", 60) + "\n";
  for (int i = 1; i < 3; ++i)
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " " + repeated("[", 60) + "*a" +
             std::to_string(i - 1) + repeated("]", 60) + "\n";
  CHECK(contains(yaml_messages(chain), "expected at most 100 levels of nesting, found more"));
}

TEST_CASE("the size of a configuration is limited") {
  CHECK(messages_within(5, repeated("#", (8 << 20) + 1)) ==
        "f:1:1: error: expected a configuration of at most 8 MiB, found more");
  CHECK(contains(messages_within(5, repeated(",", 1'100'000)), "brackets and commas"));
  // These 1000 values are the list itself and its 999 elements.
  const std::string thousand = "- &a [" + repeated("1, ", 998) + "1]\n";
  CHECK(yaml_messages(thousand + repeated("- *a\n", 998)) == "");
  CHECK(yaml_messages(thousand + repeated("- *a\n", 1000)) ==
        "f:1001:3: error: expected at most 1000000 values (expanded aliases are counted), found more");
}

TEST_CASE("values may be long, keys have at most 1024 bytes") {
  CHECK(yaml("a: " + repeated("x", 100'000)).find("a")->text().size() == 100'000);
  CHECK(yaml_messages("? " + repeated("k", 2000) + "\n: 1\n") ==
        "f:1:3: error: expected a key of at most 1024 bytes, found 2000 bytes");
}

}  // namespace dtrain::test
