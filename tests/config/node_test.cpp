#include "config/node.h"

#include <array>

#include "config/codec.h"
#include "support.h"

namespace dtrain::test {

namespace {

void check_round_trip(const ConfigNode& node) {
  const std::string text = node.to_yaml();
  CAPTURE(text);
  const ConfigNode back = yaml(text);
  CHECK(equal(back, node));
  CHECK(back.to_yaml() == text);
}

}  // namespace

TEST_CASE("changing a mapping creates a new mapping") {
  const ConfigNode node = yaml("{a: 1, b: 2, c: 3}");
  CHECK(equal(node.with("b", ConfigNode::scalar("5")), yaml("{a: 1, b: 5, c: 3}")));
  CHECK(equal(node.with("d", ConfigNode()), yaml("{a: 1, b: 2, c: 3, d: null}")));
  CHECK(equal(node.without(std::array<std::string_view, 2>{"a", "c"}), yaml("{b: 2}")));
  CHECK(ConfigNode().without(std::array<std::string_view, 1>{"a"}).is_null());
  CHECK(equal(ConfigNode().with("a", ConfigNode::scalar("1")), yaml("{a: 1}")));
  CHECK(equal(node, yaml("{a: 1, b: 2, c: 3}")));
}

TEST_CASE("describe() names the type or the shortened value") {
  CHECK(yaml("{}").describe() == "an empty mapping");
  CHECK(yaml("[]").describe() == "an empty list");
  CHECK(yaml("{a: 1}").describe() == "a mapping");
  CHECK(yaml("[0, 0.5]").describe() == "the list [0, 0.5]");
  CHECK(yaml("[[1]]").describe() == "a list");
  CHECK(ConfigNode().describe() == "nothing");
  CHECK(yaml("abc").describe() == "'abc'");
  CHECK(yaml("'5'").describe() == "the string '5'");
  const std::string text =
      std::string(59, 'x') + "\xC3\xA4" + std::string(99, 'y');  // a multi-byte character at the cut
  CHECK(ConfigNode::scalar(text).describe() == "'" + std::string(59, 'x') + "...'");
}

TEST_CASE("to_yaml() writes short collections on one line and long ones in blocks") {
  const std::string text =
      "seed: 1\n"
      "model:\n"
      "  inputs: {image: [784]}\n"
      "  layers:\n"
      "    - dense: {units: 256, activation: relu}\n"
      "    - conv2d:\n"
      "        filters: 64\n"
      "        kernel_size: [3, 3]\n"
      "        kernel_initializer: {variance_scaling: {scale: 2, mode: fan_in, distribution: normal}}\n"
      "        name: a_rather_long_name_that_does_not_fit_on_one_line\n"
      "strategy: {mirrored: {devices: [cpu:0, cpu:1]}}\n";
  CHECK(yaml(text).to_yaml() == text);
}

TEST_CASE("the text from to_yaml() is read as an equal tree") {
  check_round_trip(ConfigNode());
  check_round_trip(yaml("{a: {}, b: [], c: null, d: [[], [null], {x: {}}], \"\": 1, \"a b: c\": 2}"));
  check_round_trip(yaml("- - - 1\n    - 2\n- - a: b\n    c: |\n      x\n       y\n\n  - d\n"));
  std::vector<ConfigNode> items(200, yaml("{key: [value, {k: v}]}"));
  check_round_trip(ConfigNode::mapping({ConfigNode::entry("long", ConfigNode::sequence(std::move(items)))}));
  std::string deep = "x";
  for (int i = 0; i < 45; ++i) deep = "[{k: " + deep + "}]";
  check_round_trip(yaml(deep));
}

TEST_CASE("strings that YAML 1.1 would read as another type are quoted") {
  for (const char* text : {"yes",
                           "No",
                           "ON",
                           "off",
                           "y",
                           "n",
                           "True",
                           "null",
                           "~",
                           "",
                           "1e-07",
                           "1.0e-07",
                           "010",
                           "0o17",
                           "0x1F",
                           "0b1",
                           "1_000",
                           "12:30",
                           "190:20:30",
                           "1:30.5",
                           "2001-12-14",
                           "2001-12-14t21:59:43.10-05:00",
                           "2001-12-14 21:59:43",
                           "+12",
                           "-.5",
                           "+.inf",
                           ".NaN",
                           "._1",
                           "1/255",
                           "=",
                           "<<",
                           "1 epoch"}) {
    CAPTURE(text);
    const ConfigNode value = Codec<std::string>::write(text);
    const ConfigNode tree = ConfigNode::mapping({ConfigNode::entry(text, value)});
    const std::string yaml_text = tree.to_yaml();
    CHECK(yaml_text == "\"" + std::string(text) + "\": \"" + text + "\"\n");
  }
  for (const char* text : {"relu", "cpu:0", "runs/a", "e5", "infinite", "nullable", "a-1", "data.h5"})
    CHECK(Codec<std::string>::write(text).to_yaml() == std::string(text) + "\n");
}

TEST_CASE("strings are read back unchanged") {
  for (const char* text : {"",         " ",          "~",         "null",      "true",
                           "False",    "yes",        "1",         "-1",        "+1",
                           "1e3",      ".5",         "0x10",      "1_000",     "1e999",
                           "12:30",    "2020-01-01", ".inf",      "-.INF",     ".nan",
                           "-",        "--",         "---",       "...",       "- a",
                           "-a",       "?",          "? a",       ":",         "a:",
                           "a: b",     "a:b",        "a #b",      "a#b",       "#",
                           "&a",       "*a",         "!a",        "|",         ">",
                           "'",        "\"",         "it's",      "say \"x\"", "%",
                           "@",        "`",          "<<",        "=",         "[",
                           "]a",       "{",          "a,b",       "a]",        "\\",
                           "\\n",      "a\nb",       "\n",        "\t",        "a\tb",
                           "\r\n",     "\x01",       "\x7f",      "\xC3\xA4",  "\xE2\x80\xA8",
                           "\xC2\x85", " a",         "a ",        "$x",        "${x}",
                           "${x:-y}",  "gpu:0",      "/a/b.yaml", "1 epoch"}) {
    CAPTURE(text);
    for (const std::string& around :
         {std::string(), std::string(120, 'x') + " "}) {  // the text is on a single line, or in a block
      const std::string value = around + text;
      const ConfigNode written = Codec<std::string>::write(value);
      const ConfigNode tree = ConfigNode::mapping(
          {ConfigNode::entry(value.substr(0, 100), ConfigNode::sequence({written, written}))});
      const ConfigNode back = yaml(tree.to_yaml());
      REQUIRE(back.entries().size() == 1);
      CHECK(back.entries()[0].first.text() == value.substr(0, 100));
      const ConfigNode& item = back.entries()[0].second.items()[1];
      REQUIRE(item.is_scalar());
      CHECK(item.text() == value);
      if (around.empty()) {  // text that looks like a number or a boolean stays a string
        Diagnostics diagnostics;
        double number = 0;
        bool flag = false;
        CHECK_FALSE(Codec<double>::parse(item, "x", number, diagnostics));
        CHECK_FALSE(Codec<bool>::parse(item, "x", flag, diagnostics));
      }
    }
  }
}

}  // namespace dtrain::test
