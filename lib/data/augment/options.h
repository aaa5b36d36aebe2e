// Options that several augmentations have.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/schema.h"
#include "data/augment/warp.h"

namespace dtrain {

/// A range that something is drawn from, uniformly. Written as [lower, upper], or as one number f.
struct DrawnRange {
  double lower = 0, upper = 0;
};

template <>
struct Codec<DrawnRange> {
  static bool parse(const ConfigNode& node, const std::string& where, DrawnRange& out,
                    Diagnostics& diagnostics) {
    if (node.is_scalar()) {  // Keras: [-f, f]
      double f = 0;
      if (!Codec<double>::parse(node, where, f, diagnostics)) return false;
      out = f < 0 ? DrawnRange{f, -f} : DrawnRange{-f, f};
      return true;
    }
    std::vector<double> ends;
    if (!Codec<std::vector<double>>::parse(node, where, ends, diagnostics)) return false;
    if (ends.size() != 2 || ends[0] > ends[1])
      return report_unexpected(node, where, "a number or [lower, upper] with lower <= upper", diagnostics);
    out = {ends[0], ends[1]};
    return true;
  }
  static ConfigNode write(const DrawnRange& range) {
    return Codec<std::vector<double>>::write({range.lower, range.upper});
  }
  static Json schema() {
    Json choices = Json::array();
    choices.push(json_type("number")).push(Codec<std::vector<double>>::schema());
    return Json::object().set("oneOf", std::move(choices));
  }
};

/// Ends within [least, most].
inline Check<DrawnRange> range_within(double least, double most) {
  return {fmt::format("numbers from {} to {}", least, most),
          [=](const DrawnRange& range) { return range.lower >= least && range.upper <= most; },
          Json::object()};
}

/// The values that pictures have before and stay within behind.
using ValueRange = std::vector<double>;

inline Check<ValueRange> two_ascending() {
  return {"[least, most] with least < most",
          [](const ValueRange& range) { return range.size() == 2 && range[0] < range[1]; },
          Json::object().set("minItems", 2).set("maxItems", 2)};
}

/// Adds the fields of WarpOptions, from which `Options` derives.
template <class Options>
void add_warp_options(Schema<Options>& schema) {
  schema
      .optional("fill_mode", static_cast<FillMode Options::*>(&Options::fill_mode),
                "what is beyond the edges: reflect, wrap, constant (fill_value) or nearest")
      .optional("interpolation", static_cast<Interpolation Options::*>(&Options::interpolation),
                "bilinear or nearest")
      .optional("fill_value", static_cast<double Options::*>(&Options::fill_value), "for fill_mode constant");
}

}  // namespace dtrain
