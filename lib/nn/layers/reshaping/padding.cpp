#include "nn/layers/reshaping/padding.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace dtrain {
namespace {

using Pair = std::pair<int64_t, int64_t>;  // numbers of pixels before and after the image along one axis

bool parse_number_of_pixels(const ConfigNode& node, const std::string& where, int64_t& out,
                            Diagnostics& diagnostics) {
  if (!Codec<int64_t>::parse(node, where, out, diagnostics)) return false;
  constexpr int64_t kMost = 1 << 20;
  if (out >= 0 && out <= kMost) return true;
  return report_unexpected(node, where, fmt::format("a number from 0 to {}", kMost), diagnostics);
}

/// Parses a pair [before, after]. A single number n is the same as [n, n].
bool parse_pair(const ConfigNode& node, const std::string& where, Pair& out, Diagnostics& diagnostics) {
  if (!node.is_sequence()) {
    if (!parse_number_of_pixels(node, where, out.first, diagnostics)) return false;
    out.second = out.first;
    return true;
  }
  if (node.items().size() != 2)
    return report_unexpected(node, where, "a list of two numbers, [before, after]", diagnostics);
  return parse_number_of_pixels(node.items()[0], where, out.first, diagnostics) &&
         parse_number_of_pixels(node.items()[1], where, out.second, diagnostics);
}

/// Parses the numbers of pixels. `node` is one number for all sides, or a list with one item per axis. Each
/// item is a number or a pair.
bool parse_sides(const ConfigNode& node, const std::string& where, std::string_view forms,
                 std::span<Pair> axes, Diagnostics& diagnostics) {
  if (!node.is_sequence()) {
    Pair both;
    if (!parse_pair(node, where, both, diagnostics)) return false;
    std::fill(axes.begin(), axes.end(), both);
    return true;
  }
  if (node.items().size() != axes.size()) return report_unexpected(node, where, forms, diagnostics);
  bool good = true;
  for (size_t i = 0; i < axes.size(); ++i)
    good = parse_pair(node.items()[i], where, axes[i], diagnostics) && good;
  return good;
}

ConfigNode write_pair(int64_t before, int64_t after) {
  return ConfigNode::sequence({Codec<int64_t>::write(before), Codec<int64_t>::write(after)});
}

Json sides_schema(int64_t axes) {
  const Json number = Json(json_type("integer")).set("minimum", 0);
  const auto list_of = [](const Json& item, int64_t count) {
    return json_type("array").set("items", item).set("minItems", count).set("maxItems", count);
  };
  Json side = Json::array();
  side.push(number).push(list_of(number, 2));
  Json choices = Json::array();
  choices.push(number).push(list_of(Json::object().set("anyOf", std::move(side)), axes));
  return Json::object().set("anyOf", std::move(choices));
}

}  // namespace

bool Codec<Padding2>::parse(const ConfigNode& node, const std::string& where, Padding2& out,
                            Diagnostics& diagnostics) {
  std::array<Pair, 2> axes;
  if (!parse_sides(node, where, kPadding2Forms, axes, diagnostics)) return false;
  const auto& [rows, columns] = axes;
  out = {rows.first, rows.second, columns.first, columns.second};
  return true;
}

ConfigNode Codec<Padding2>::write(const Padding2& value) {
  return ConfigNode::sequence({write_pair(value.top, value.bottom), write_pair(value.left, value.right)});
}

Json Codec<Padding2>::schema() {
  return sides_schema(2);
}

bool Codec<Padding3>::parse(const ConfigNode& node, const std::string& where, Padding3& out,
                            Diagnostics& diagnostics) {
  std::array<Pair, 3> axes;
  if (!parse_sides(node, where, kPadding3Forms, axes, diagnostics)) return false;
  const auto& [planes, rows, columns] = axes;
  out = {rows.first, rows.second, columns.first, columns.second, planes.first, planes.second};
  return true;
}

ConfigNode Codec<Padding3>::write(const Padding3& value) {
  return ConfigNode::sequence({write_pair(value.front, value.back), write_pair(value.top, value.bottom),
                               write_pair(value.left, value.right)});
}

Json Codec<Padding3>::schema() {
  return sides_schema(3);
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
