// Options that several augmentations share.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/schema.h"
#include "data/augment/warp.h"

namespace dtrain {

/// The range of a uniform distribution. In a configuration, it is written as [lower, upper], or as one number
/// f, which means [-f, f].
struct UniformRange {
  double lower = 0, upper = 0;
};

template <>
struct Codec<UniformRange> {
  static bool parse(const ConfigNode& node, const std::string& where, UniformRange& out,
                    Diagnostics& diagnostics) {
    if (node.is_scalar()) {  // a number f means [-f, f], as in Keras
      double f = 0;
      if (!Codec<double>::parse(node, where, f, diagnostics)) return false;
      out = f < 0 ? UniformRange{f, -f} : UniformRange{-f, f};
      return true;
    }
    std::vector<double> ends;
    if (!Codec<std::vector<double>>::parse(node, where, ends, diagnostics)) return false;
    if (ends.size() != 2 || ends[0] > ends[1])
      return report_unexpected(node, where, "a number, or a range [lower, upper] with lower <= upper",
                               diagnostics);
    out = {ends[0], ends[1]};
    return true;
  }
  static ConfigNode write(const UniformRange& range) {
    return Codec<std::vector<double>>::write({range.lower, range.upper});
  }
  static Json schema() {
    Json choices = Json::array();
    choices.push(json_type("number")).push(Codec<std::vector<double>>::schema());
    return Json::object().set("oneOf", std::move(choices));
  }
};

/// Checks that both ends of a range (or of an optional range that is set) are within [least, most].
template <class Range = UniformRange>
Check<Range> range_within(double least, double most) {
  const auto is_within = [=](const UniformRange& range) {
    return range.lower >= least && range.upper <= most;
  };
  const auto holds = [=](const Range& range) {
    if constexpr (std::is_same_v<Range, UniformRange>)
      return is_within(range);
    else
      return !range || is_within(*range);
  };
  return {fmt::format("numbers from {} to {}", least, most), holds, Json::object()};
}

/// [least, most]: the range of an image's values, to which augmentations clip their results.
using ValueRange = std::vector<double>;

inline Check<ValueRange> two_ascending() {
  return {"a range [least, most] with least < most",
          [](const ValueRange& range) { return range.size() == 2 && range[0] < range[1]; },
          Json::object().set("minItems", 2).set("maxItems", 2)};
}

/// Returns the check for the option fill_class. A class number of a mask must be from 0 to 255 because the
/// pixels of masks are bytes.
inline Check<int64_t> class_numbers_of_bytes() {
  return between<int64_t>(0, 255);
}

/// Adds the options of WarpOptions to a schema. `Options` must derive from WarpOptions.
template <class Options>
void add_warp_options(Schema<Options>& schema) {
  schema
      .optional("fill_mode", static_cast<FillMode Options::*>(&Options::fill_mode),
                "values of pixels that are taken from beyond the edges of the image: reflect (the image is "
                "mirrored at its edge), wrap (the image is repeated), constant (fill_value) or nearest (the "
                "nearest pixel at the edge)")
      .optional("interpolation", static_cast<Interpolation Options::*>(&Options::interpolation),
                "interpolation between pixels")
      .optional("fill_value", static_cast<double Options::*>(&Options::fill_value),
                "value of pixels that are taken from beyond the edges; used only with `fill_mode: constant`")
      .optional(
          "fill_class", static_cast<int64_t Options::*>(&Options::fill_class),
          "class of mask pixels that are taken from beyond the edges; used only with `fill_mode: constant`",
          class_numbers_of_bytes());
}

}  // namespace dtrain
