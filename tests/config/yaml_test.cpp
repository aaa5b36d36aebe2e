// parse_yaml on texts that people write; limits_test.cpp has the hostile ones.
#include "support.h"

namespace dtrain {

TEST_CASE("values know where they were written") {
  const ConfigNode root = yaml("a: 1\nb:\n  - x\n  - {c: \"2\", d: }\ne:\nf: ~\n");
  REQUIRE(root.is_mapping());
  CHECK(root.find("a")->mark().str() == "f:1:4");
  CHECK(root.entries()[1].first.mark().str() == "f:2:1");
  const ConfigNode& list = *root.find("b");
  CHECK(list.mark().str() == "f:3:3");
  CHECK(list.items()[1].mark().str() == "f:4:5");
  CHECK(list.items()[1].find("c")->quoted());
  CHECK_FALSE(root.find("a")->quoted());
  CHECK(list.items()[1].find("d")->is_null());
  CHECK(root.find("e")->is_null());
  CHECK(root.find("e")->mark().str() == "f:5:1");  // nothing stands there, so its key is shown
  CHECK(root.find("f")->mark().str() == "f:6:4");
  CHECK(root.find("g") == nullptr);
}

TEST_CASE("an alias is what it stands for") {
  const ConfigNode root = yaml("a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]\n");
  CHECK(equal(*root.find("a"), *root.find("b")));
  CHECK(root.find("c")->items()[1].same_as(*root.find("a")));
}

TEST_CASE("byte order mark, document marks, comments and text blocks are fine") {
  CHECK(yaml("\xEF\xBB\xBF---\na: 1 # one\n...\n# end\n").find("a")->text() == "1");
  CHECK(yaml("a: |\n  x\n  y\n").find("a")->text() == "x\ny\n");
  CHECK(yaml("a: [gpu:0, cpu:1]").find("a")->items()[0].text() == "gpu:0");
  CHECK(yaml("null").is_null());
}

TEST_CASE("every mistake of a text has its place") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "f:1:1: error: expected a YAML document, found nothing"},
      {"# nothing\n", "f:1:1: error: expected a YAML document, found nothing"},
      {"a: 1\nb: 2\na: 3\n", "f:3:1: error: duplicate key 'a'"},
      {"a: 1\n---\nb: 2\n", "f:2:1: error: expected one document, found another"},
      {"a: !!binary aGk=\n", "f:1:4: error: tags are not supported, found 'tag:yaml.org,2002:binary'"},
      {"a: !mine [1]\n", "f:1:4: error: tags are not supported, found '!mine'"},
      {"b: &x {c: 1}\na:\n  <<: *x\n", "f:3:3: error: merge keys (<<) are not supported; write the keys out"},
      {"a: &x [*x]\n",
       "f:1:8: error: an alias within the value that it stands for (in the brackets that open at f:1:4)"},
      {"a: &x\n  b: *x\n", "f:2:6: error: an alias within the value that it stands for"},
      {"? [a]\n: 1\n",
       "f:1:3: error: expected a key that is a scalar, found a collection, or a bracket without its end"},
      {"a:\n\tb: 1\n", "f:2:2: error: a tab in the indentation; use spaces"},
      {"a: [1, 2\nb: 3\n",
       "f:2:2: error: end of sequence flow not found (in the brackets that open at f:1:4)"},
      {"a: b: c\n", "f:1:5: error: illegal map value"},
      {std::string("a: 1\nb: \0\n", 9), "f:2:4: error: expected text, found the control character 0x00"},
      {"a: x\x04y\n", "f:1:5: error: expected text, found the control character 0x04"},
      {"a: \xff\n", "f:1:4: error: expected UTF-8 text, found the byte 0xff"},
      {"a: \xc0\xaf\n", "f:1:4: error: expected UTF-8 text, found the byte 0xc0"},
      {"a: \xed\xa0\x80\n", "f:1:4: error: expected UTF-8 text, found the byte 0xed"},
      {"a: \xe2\x82", "f:1:4: error: expected UTF-8 text, found the byte 0xe2"},
      {std::string("\x89HDF\r\n\x1a\n\0\0", 10), "f:1:1: error: expected UTF-8 text, found the byte 0x89"},
  };
  for (const auto& [text, message] : cases) CHECK(yaml_messages(text) == message);
  // The words are yaml-cpp's: 0.7 ends there, 0.8 names the anchor.
  const std::string unknown = "f:1:4: error: the referenced anchor is not defined",
                    found = yaml_messages("a: *x\n");
  CHECK((found == unknown || found == unknown + ": x"));
}

TEST_CASE("mistakes that do not end the reading are reported together") {
  CHECK(
      yaml_messages("a: 1\na: 2\nb: !!str x\nb: 3\n") ==
      "f:2:1: error: duplicate key 'a'\nf:3:4: error: tags are not supported, found 'tag:yaml.org,2002:str'\n"
      "f:4:1: error: duplicate key 'b'");
}

}  // namespace dtrain
