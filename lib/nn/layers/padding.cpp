#include "nn/layers/padding.h"

#include <utility>

#include <fmt/format.h>

namespace dtrain {
namespace {

using Pair = std::pair<int64_t, int64_t>;  // before and after

bool parse_number_of_pixels(const ConfigNode& node, const std::string& where, int64_t& out,
                            Diagnostics& diagnostics) {
  if (!Codec<int64_t>::parse(node, where, out, diagnostics)) return false;
  constexpr int64_t kMost = 1 << 20;
  if (out >= 0 && out <= kMost) return true;
  return report_unexpected(node, where, fmt::format("a number from 0 to {}", kMost), diagnostics);
}

/// Parses [before, after], or one number for both.
bool parse_pair(const ConfigNode& node, const std::string& where, Pair& out, Diagnostics& diagnostics) {
  if (!node.is_sequence()) {
    if (!parse_number_of_pixels(node, where, out.first, diagnostics)) return false;
    out.second = out.first;
    return true;
  }
  if (node.items().size() != 2)
    return report_unexpected(node, where, "two numbers, before and after", diagnostics);
  return parse_number_of_pixels(node.items()[0], where, out.first, diagnostics) &&
         parse_number_of_pixels(node.items()[1], where, out.second, diagnostics);
}

}  // namespace

bool Codec<Padding2>::parse(const ConfigNode& node, const std::string& where, Padding2& out,
                            Diagnostics& diagnostics) {
  if (!node.is_sequence()) {
    Pair both;
    if (!parse_pair(node, where, both, diagnostics)) return false;
    out = {both.first, both.second, both.first, both.second};
    return true;
  }
  if (node.items().size() != 2) return report_unexpected(node, where, kPadding2Forms, diagnostics);
  Pair rows, columns;
  const bool good = parse_pair(node.items()[0], where, rows, diagnostics);
  if (!parse_pair(node.items()[1], where, columns, diagnostics) || !good) return false;
  out = {rows.first, rows.second, columns.first, columns.second};
  return true;
}

ConfigNode Codec<Padding2>::write(const Padding2& value) {
  const auto pair = [](int64_t before, int64_t after) {
    return ConfigNode::sequence({Codec<int64_t>::write(before), Codec<int64_t>::write(after)});
  };
  return ConfigNode::sequence({pair(value.top, value.bottom), pair(value.left, value.right)});
}

Json Codec<Padding2>::schema() {
  const Json number = Json(json_type("integer")).set("minimum", 0);
  const auto pair_of = [](const Json& item) {
    return json_type("array").set("items", item).set("minItems", 2).set("maxItems", 2);
  };
  Json side = Json::array();
  side.push(number).push(pair_of(number));
  Json choices = Json::array();
  choices.push(number).push(pair_of(Json::object().set("anyOf", std::move(side))));
  return Json::object().set("anyOf", std::move(choices));
}

PreparedPadding::PreparedPadding(const LayerRequest& request, const Padding2& padding, Kind kind)
    : ops_(request.ops),
      padding_(padding),
      pads_(kind == Kind::pad),
      inner_shape_((pads_ ? request.inputs[0] : request.output()).shape.prepended(request.batch)) {}

void PreparedPadding::forward(const LayerArguments& args) {
  pads_ ? pad(args.input(), args.output()) : crop(args.input(), args.output());
}

void PreparedPadding::backward(const LayerArguments& args) {
  if (!args.diff_inputs[0]) return;
  pads_ ? crop(args.diff_output(), args.diff_inputs[0]) : pad(args.diff_output(), args.diff_inputs[0]);
}

}  // namespace dtrain
