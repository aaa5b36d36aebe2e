// In a configuration, bytes that are not UTF-8 are represented by "\udc80" to "\udcff", as in Python. Values
// with such bytes are written and read back unchanged.
#include <random>

#include "base/utf8.h"
#include "support.h"

namespace dtrain::test {

TEST_CASE("a scalar of any bytes is written as UTF-8 and read back") {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string bytes;
    for (unsigned length = 1 + random() % 12; bytes.size() < length;)
      bytes += static_cast<char>(random() % 3 ? 0x80 + random() % 0x80 : 0x20 + random() % 0x5f);
    const ConfigNode tree = ConfigNode::mapping({ConfigNode::entry("root", ConfigNode::scalar(bytes)),
                                                 ConfigNode::entry("after", ConfigNode::scalar("x"))});
    const std::string text = tree.to_yaml();
    CAPTURE(text);
    CHECK(is_utf8(text));
    CHECK(equal(yaml(text), tree));
  }
  CHECK(ConfigNode::scalar("/home/d\xe9").to_yaml() == "\"/home/d\\udce9\"\n");
  CHECK(ConfigNode::mapping({{ConfigNode::scalar("\xff"), ConfigNode::scalar("1")}}).to_yaml() ==
        "\"\\udcff\": 1\n");
}

TEST_CASE("escapes are interpreted only between double quotes") {
  const std::string with_escape = "\"\\udce9\"";
  for (const std::string literal : {"C:\\udce9", "'\\udce9'", "\"\\\\udce9\""}) {
    const ConfigNode root = yaml("a: " + literal + "\nb: " + with_escape + "\n");
    CHECK(contains(root.find("a")->text(), "\\udce9"));
    CHECK(root.find("b")->text() == "\xe9");
  }
  CHECK(yaml("a: |\n  \\udce9\nb: \"\\uDCFFx\"\n").find("a")->text() == "\\udce9\n");
  CHECK(yaml("a: |\n  \\udce9\nb: \"\\uDCFFx\"\n").find("b")->text() == "\xffx");
}

TEST_CASE("private-use characters are kept, and locations are correct, in texts with escapes") {
  for (const std::string own : {"\xee\x82\x80", "\\ue080", "\\U0000E080", "blue080"}) {
    CAPTURE(own);
    const ConfigNode root = yaml("a: \"" + own + "\"\nb: [\"\\udc80\", c]\n");
    CHECK(equal(*root.find("a"), *yaml("a: \"" + own + "\"\n").find("a")));
    CHECK(root.find("b")->items()[0].text() == "\x80");
    CHECK(root.find("b")->items()[1].mark().str() == "f:2:15");
  }
}

TEST_CASE("surrogates that do not represent a byte are errors") {
  for (const char* escape : {"\\udc7f", "\\ud800", "\\udd80"})
    CHECK(yaml_messages("a: \"" + std::string(escape) + "\"\n") != "");
}

}  // namespace dtrain::test
