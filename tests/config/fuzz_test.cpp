// Random damage to a configuration. Parsing always returns. If the damaged text can be parsed, writing the
// tree and reading it back give the same tree.
#include <algorithm>
#include <random>

#include "layers.h"
#include "support.h"

namespace dtrain::test {

namespace {

constexpr std::string_view kSample = R"(# A run
name: "sample"
model:
  inputs: {image: [28, 28, 1]}
  layers:
    - conv2d: &conv {filters: 8, kernel_size: [3, 3], padding: same, activation: leaky_relu}
    - conv2d: *conv
    - conv2d: {<<: *conv, filters: 4}
    - reshape: {<<: [{target_shape: [2]}, {target_shape: [3]}]}
    - reshape: [784]
    - activation: {leaky_relu: {negative_slope: 0.1}}
dataset: |
  text
  more
train:
  epochs: 2
  optimizer: {adam: {learning_rate: 1e-3}}
)";

std::string damaged(std::mt19937& random) {
  static constexpr std::string_view kBytes = "\n\t :-?[]{},&*!|>'\"%@`#~<=0a\\\x80\xff";
  std::string text(kSample);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t edits = 1 + below(6); edits > 0 && !text.empty(); --edits) {
    const size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text[at] = kBytes[below(kBytes.size())];
        break;
      case 2:
        text.insert(at, 1, kBytes[below(kBytes.size())]);
        break;
      case 3:
        text.erase(at, 1 + below(12));
        break;
      default:
        text.insert(at, text.substr(below(text.size()), below(40)));
    }
  }
  return text;
}

/// Checks that the location of every reported error is inside the text.
void check_places(const Diagnostics& diagnostics, const std::string& text) {
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  for (const auto& item : diagnostics.items()) {
    CHECK(item.mark.line >= 1);
    CHECK(item.mark.line <= lines + 1);
    CHECK(item.mark.column >= 1);
    CHECK_FALSE(item.message.empty());
  }
}

void parse_options(const ConfigNode& node, Diagnostics& diagnostics) {
  const auto layers = Registry<TestConv>("layer").add<TestConv>("conv2d", TestConv::schema());
  if (const ConfigNode* model = node.find("model"))
    if (const ConfigNode* list = model->find("layers"); list && list->is_sequence())
      for (const ConfigNode& item : list->items()) layers.parse(item, diagnostics);
}

}  // namespace

TEST_CASE("a damaged configuration is read or rejected without a crash") {
  std::mt19937 random(20240607);
  int readable = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = damaged(random);
    CAPTURE(text);
    Diagnostics diagnostics;
    const ConfigNode node = parse_yaml(text, "f", diagnostics);
    check_places(diagnostics, text);
    if (diagnostics.has_errors()) continue;
    ++readable;
    CHECK(equal(yaml(node.to_yaml()), node));
    parse_options(node, diagnostics);
    check_places(diagnostics, text);
    apply_sets(node, {"model.layers.0.conv2d.filters=3"}, diagnostics);
  }
  CHECK(readable > 300);  // otherwise only the parser was tested
}

}  // namespace dtrain::test
