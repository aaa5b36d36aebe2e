// JSON with strings of arbitrary bytes, and with characters that other programs escape differently.
#include "base/json.h"

#include <random>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/utf8.h"

namespace dtrain {

TEST_CASE("a string of any bytes is written as UTF-8 and read back") {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (unsigned length = random() % 12; bytes.size() < length;)
      bytes += static_cast<char>(random() % 3 ? 0x80 + random() % 0x80 : random() % 0x80);
    const std::string text = Json(bytes).dump();
    CHECK(is_utf8(text));
    CHECK(Json::parse(text).as_string() == bytes);
  }
  CHECK(Json("d\xe9").dump() == R"("d\udce9")");  // same as Python's json.dumps(os.fsdecode(...))
  CHECK(Json("\xc3\xa9\xc3").dump() == "\"\xc3\xa9\\udcc3\"");
  CHECK(Json::object().set("\xff", 1).dump() == R"({"\udcff": 1})");
}

TEST_CASE("escaped characters are read") {
  CHECK(Json::parse(R"("\u00e9\u20ac")").as_string() == "\xc3\xa9\xe2\x82\xac");
  CHECK(Json::parse(R"("\ud83d\ude00!")").as_string() == "\xf0\x9f\x98\x80!");
  for (const char* bad : {R"("\ud83d\u0041")", R"("\ud83d\u12")", R"("\u12")", R"("\x41")", R"("\u)"})
    CHECK_THROWS_AS(Json::parse(bad), UserError);
}

TEST_CASE("JSON accepts the grammar of RFC 8259 and nothing else") {
  for (const char* good : {"0",           "-0",           "-0.0",
                           "10",          "1.5e3",        "1E+2",
                           "1e-2",        "0e1",          "123456789012345678901234567890",
                           "[]",          "{}",           " [ 1 , 2 ] ",
                           "\t\r\n null", R"("")",        R"("\b\f\n\r\t\"\\\/")",
                           R"({"": 1})",  R"("\u0000")",  R"([[[]], {"a": {}}])",
                           "\"\x7f\"",    "\"\xc3\xa9\"", R"([true, false, null])"}) {
    INFO(good);
    CHECK_NOTHROW(Json::parse(good));
  }
  for (const char* bad : {"",           " ",         "nan",         "NaN",         "inf",
                          "Infinity",   "-Infinity", "01",          "-01",         "+1",
                          ".5",         "-.5",       "1.",          "1.e2",        "1e",
                          "1e+",        "0x10",      "1_000",       "- 1",         "--1",
                          "1 2",        "[1",        "[1,",         "[1,]",        "[,1]",
                          "[1 2]",      "[1]]",      "{",           "{\"a\"}",     "{\"a\":}",
                          "{\"a\":1,}", "{a:1}",     "{1:1}",       "{'a':1}",     "{\"a\":1 \"b\":2}",
                          "{,}",        "'a'",       "\"a",         "\"\n\"",      "\"\t\"",
                          "\"\x01\"",   R"("\a")",   R"("\u00g0")", R"("\u-001")", R"("\)",
                          "True",       "nul",       "nulll",       "tru",         "[nan]",
                          "// a\n1",    "1 # a",     "/**/1",       "[1]\x0c",     "\xe2\x80\x8b[]",
                          "1e999"}) {
    INFO(bad);
    CHECK_THROWS_AS(Json::parse(bad), UserError);
  }
  CHECK_THROWS_AS(Json::parse(std::string(100'000, '[')), UserError);
  CHECK_THROWS_AS(Json::parse(std::string("\"\0\"", 3)), UserError);
  CHECK(Json::parse("-0.5e1").as_double() == -5);
  CHECK(Json::parse("9223372036854775807").as_int() == INT64_MAX);
  CHECK(Json::parse("9223372036854775808").as_double() == 0x1p63);
}

TEST_CASE("the last value of a repeated key wins, and many keys are parsed in linear time") {
  CHECK(Json::parse(R"({"a": 1, "b": 2, "a": 3})").dump() == R"({"a": 3, "b": 2})");
  std::string many = "{";
  for (int i = 0; i < 300'000; ++i) many += "\"" + std::to_string(i) + "\": 0, ";
  CHECK(Json::parse(many + "\"last\": 0}").entries().size() == 300'001);
}

TEST_CASE("is_utf8() accepts exactly well-formed UTF-8") {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"})
    for (size_t before = 0; before < 20; ++before) CHECK(is_utf8(std::string(before, 'a') + good));
  for (const char* bad : {"\x80", "\xc1\x80", "\xc2", "\xe0\x9f\x80", "\xed\xa0\x80", "\xf0\x8f\x80\x80",
                          "\xf4\x90\x80\x80", "\xff", "a\xc2"})
    for (size_t before = 0; before < 20; ++before)
      CHECK(!is_utf8(std::string(before, 'a') + bad + std::string(9, 'a')));
  std::string all;
  for (const uint32_t code : {0x24u, 0xa3u, 0x20acu, 0x10348u}) append_utf8(all, code);
  CHECK(all == "\x24\xc2\xa3\xe2\x82\xac\xf0\x90\x8d\x88");
}

}  // namespace dtrain
