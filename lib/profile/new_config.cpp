#include "profile/new_config.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/utf8.h"
#include "config/codec.h"
#include "config/load/environment.h"

namespace dtrain {

namespace {

std::string comment(std::string_view text) {
  return "# " + one_line(text) + "\n";
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  for (size_t at = 0, length; at < text.size(); at += length) {
    length = std::max<size_t>(utf8_length(text.substr(at, 4)), 1);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == 0x7f)
      line += ' ';
    else if (byte >= 0x80 && length == 1)
      line += escaped_byte(byte);
    else
      line += text.substr(at, length);
  }
  return line;
}

std::string yaml_string(const std::string& text) {
  std::string yaml = escape_environment(string_node(text)).to_yaml();
  yaml.pop_back();  // the line break
  return yaml;
}

std::string config_head(const NewOptions& options, const NewConfig& config) {
  std::string text = options.schema.empty() ? "" : comment("yaml-language-server: $schema=" + options.schema);
  const std::string train = options.schema.empty() ? "" : " Train:  dtrain fit " + options.file;
  text += comment(fmt::format("Written by `dtrain new {}`.{}", options.data, train));
  for (const std::string& note : config.notes) text += comment(note + ".");
  if (!config.table.empty()) text += "#\n";
  for (size_t at = 0; at < config.table.size();) {
    const size_t end = config.table.find('\n', at);
    text += comment(config.table.substr(at, end - at));
    at = end + 1;
  }
  if (!config.table.empty()) text += "#\n";
  for (const std::string& warning : config.warnings) text += comment(warning + ".");
  return text + "\nseed: 1\n\n";
}

std::string describe_classes(const std::vector<std::string>& names, const std::vector<int64_t>& counts) {
  constexpr size_t kMostShown = 12;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kMostShown); ++i)
    shown.push_back(fmt::format("{} ({})", names[i], format_count(counts[i])));
  if (names.size() > kMostShown) shown.emplace_back("...");
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string path_from_config(const NewOptions& options, const std::string& path) {
  return std::filesystem::proximate(path, options.folder).string();
}

}  // namespace dtrain
