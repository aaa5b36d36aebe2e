#include "new_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"

namespace dtrain {

/// As YAML has it, also within brackets: plain where nothing can be meant by it, else in quotes as JSON has.
std::string yaml_string(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-';
  };
  constexpr std::array<std::string_view, 12> kMeantOtherwise{"true", "false", "yes", "no",   "on",  "off",
                                                             "null", "y",     "n",   "True", "inf", "nan"};
  const bool letter_first =
      !text.empty() && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
  const bool harmless =
      letter_first && std::all_of(text.begin(), text.end(), plain) &&
      std::find(kMeantOtherwise.begin(), kMeantOtherwise.end(), text) == kMeantOtherwise.end();
  return harmless || text.starts_with("./") ? text : Json(text).dump();
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(yaml_string(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string config_head(const NewOptions& options, const std::string& described) {
  return fmt::format(
      "# yaml-language-server: $schema={}\n# Made by `dtrain new {}`. Train:  dtrain fit {}\n{}\nseed: 1\n\n",
      options.schema, options.data, options.file, described);
}

std::string path_from_config(const NewOptions& options, const std::string& path) {
  return std::filesystem::proximate(path, options.folder).string();
}

}  // namespace dtrain
