// An option that is one number, or a list with one number for each channel.
#pragma once

#include <string>
#include <vector>

#include "config/codec.h"

namespace dtrain {

/// One number for all channels, or a list with one number for each channel.
struct PerChannel {
  std::vector<double> values;
};

template <>
struct Codec<PerChannel> {
  static bool parse(const ConfigNode& node, const std::string& where, PerChannel& out,
                    Diagnostics& diagnostics) {
    if (node.is_sequence()) {
      if (node.items().empty())
        return report_unexpected(node, where, "a number, or a list with one number for each channel",
                                 diagnostics);
      return Codec<std::vector<double>>::parse(node, where, out.values, diagnostics);
    }
    out.values.assign(1, 0.0);
    return Codec<double>::parse(node, where, out.values[0], diagnostics);
  }
  static ConfigNode write(const PerChannel& value) {
    return value.values.size() == 1 ? Codec<double>::write(value.values[0])
                                    : Codec<std::vector<double>>::write(value.values);
  }
  static Json schema() {
    Json choices = Json::array();
    choices.push(Codec<double>::schema()).push(Codec<std::vector<double>>::schema());
    return Json::object().set("anyOf", std::move(choices));
  }
};

}  // namespace dtrain
