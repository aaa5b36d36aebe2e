#include "run/tensorboard_options.h"

#include <charconv>

namespace dtrain {

bool Codec<UpdateFrequency>::parse(const ConfigNode& node, const std::string& where, UpdateFrequency& out,
                                   Diagnostics& diagnostics) {
  if (node.is_scalar()) {
    const std::string& text = node.text();
    int64_t steps = text == "epoch" ? 0 : 1;
    if (text == "epoch" || text == "batch") {
      out.steps = steps;
      return true;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
    if (error == std::errc() && end == text.data() + text.size() && steps > 0) {
      out.steps = steps;
      return true;
    }
  }
  return report_unexpected(node, where, "'epoch', 'batch' or a number of steps, at least 1", diagnostics);
}

ConfigNode Codec<UpdateFrequency>::write(const UpdateFrequency& value) {
  if (value.steps < 2) return ConfigNode::scalar(value.steps == 0 ? "epoch" : "batch");
  return ConfigNode::scalar(std::to_string(value.steps));
}

Json Codec<UpdateFrequency>::schema() {
  return Json::object().set("anyOf",
                            Json(Json::Array{Json::object().set("enum", Json(Json::Array{"epoch", "batch"})),
                                             Json::object().set("type", "integer").set("minimum", 1)}));
}

}  // namespace dtrain
