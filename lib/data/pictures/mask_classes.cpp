#include "data/pictures/mask_classes.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace dtrain {

namespace {

constexpr const char* kNumbers = "numbers";
constexpr const char* kColorPattern = "^#[0-9a-fA-F]{6}$";

uint32_t color_of_gray(uint32_t level) {
  return level << 16 | level << 8 | level;
}

bool is_gray_color(uint32_t color) {
  return color == color_of_gray(color & 0xff);
}

/// Parses a gray level or a color. Returns nullopt if the node is neither.
std::optional<uint32_t> color_in(const ConfigNode& node) {
  if (!node.is_scalar()) return std::nullopt;
  const std::string& text = node.text();
  const auto consists_of = [&](size_t from, const char* digits) {
    return text.size() > from && text.find_first_not_of(digits, from) == std::string::npos;
  };
  if (text.size() == 7 && text[0] == '#' && consists_of(1, "0123456789abcdefABCDEF"))
    return static_cast<uint32_t>(std::stoul(text.substr(1), nullptr, 16));
  if (node.quoted() || text.size() > 3 || !consists_of(0, "0123456789")) return std::nullopt;
  const auto level = static_cast<uint32_t>(std::stoul(text));
  return level > 255 ? std::nullopt : std::optional(color_of_gray(level));
}

}  // namespace

bool MaskClasses::are_gray() const {
  return std::all_of(colors.begin(), colors.end(), is_gray_color);
}

std::optional<size_t> MaskClasses::find(std::span<const uint8_t> rgb, uint8_t* classes) const {
  size_t last = 0;  // class of the previous pixel, which is compared first
  for (size_t i = 0; i < rgb.size() / 3; ++i) {
    const uint32_t color = uint32_t{rgb[3 * i]} << 16 | uint32_t{rgb[3 * i + 1]} << 8 | rgb[3 * i + 2];
    if (colors[last] != color) {
      const auto found = std::find(colors.begin(), colors.end(), color);
      if (found == colors.end()) return i;
      last = static_cast<size_t>(found - colors.begin());
    }
    classes[i] = static_cast<uint8_t>(last);
  }
  return std::nullopt;
}

bool Codec<MaskClasses>::parse(const ConfigNode& node, const std::string& where, MaskClasses& out,
                               Diagnostics& diagnostics) {
  out.colors.clear();
  if (node.is_scalar() && node.text() == kNumbers) return true;
  if (!node.is_sequence() || node.items().empty() || node.items().size() > MaskClasses::kMost)
    return report_unexpected(node, where,
                             fmt::format("{} (the values of the pixels are the class numbers) or a list of 1 "
                                         "to {} gray levels and colors, one for each class",
                                         kNumbers, MaskClasses::kMost),
                             diagnostics);
  bool good = true;
  for (const ConfigNode& item : node.items()) {
    const auto color = color_in(item);
    if (!color) {
      good = report_unexpected(item, where, "a gray level from 0 to 255 or a color such as \"#ff8000\"",
                               diagnostics);
    } else if (std::find(out.colors.begin(), out.colors.end(), *color) != out.colors.end()) {
      diagnostics.error(
          item,
          fmt::format("{}: {} is listed for two classes; each class needs a different gray level or color",
                      where, item.describe()));
      good = false;
    } else {
      out.colors.push_back(*color);
    }
  }
  return good;
}

ConfigNode Codec<MaskClasses>::write(const MaskClasses& classes) {
  if (classes.are_numbers()) return ConfigNode::scalar(kNumbers);
  std::vector<ConfigNode> items;
  for (const uint32_t color : classes.colors)
    items.push_back(is_gray_color(color) ? ConfigNode::scalar(std::to_string(color & 0xff))
                                         : ConfigNode::scalar(fmt::format("#{:06x}", color), true));
  return ConfigNode::sequence(std::move(items));
}

Json Codec<MaskClasses>::schema() {
  const Json level = json_type("integer").set("minimum", 0).set("maximum", 255);
  const Json color = json_type("string").set("pattern", kColorPattern);
  const Json item = Json::object().set("anyOf", Json::array().push(level).push(color));
  const Json list = json_type("array")
                        .set("items", item)
                        .set("minItems", 1)
                        .set("maxItems", static_cast<int64_t>(MaskClasses::kMost));
  return Json::object().set("anyOf", Json::array().push(Json::object().set("const", kNumbers)).push(list));
}

}  // namespace dtrain
