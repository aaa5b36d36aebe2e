#include "sweep/sweep_plan.h"

#include <algorithm>
#include <cctype>
#include <random>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/hash.h"
#include "report/sweep.h"

namespace dtrain {

namespace {

constexpr int64_t kMostSettings = 10'000;

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') + 1 - begin));
}

/// Splits the text at commas outside brackets, braces and quotes.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values;
  size_t begin = 0;
  int depth = 0;
  char quote = 0;     // the opening quote, if the position is inside quotes
  char before = ',';  // the last character other than a space
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == '\\' && quote == '"') ++i;
      if (c == quote) quote = 0;
    } else if ((c == '"' || c == '\'') && std::string_view(",[{:").find(before) != std::string_view::npos) {
      quote = c;  // in the middle of a value, a quote is an apostrophe
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      values.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
    if (c != ' ') before = c;
  }
  values.push_back(trimmed(text.substr(std::min(begin, text.size()))));
  return values;
}

void check_values(const std::string& set, const std::vector<std::string>& values) {
  std::set<std::string> seen;
  for (const std::string& value : values) {
    if (value.empty())
      throw UserError(fmt::format("--set {}: a value before or after a comma is missing", set));
    if (!seen.insert(value).second)
      throw UserError(
          fmt::format("--set {}: the value '{}' is given twice; give each value once", set, value));
  }
}

/// Returns the number of combinations, or a number greater than `most` if there are more.
int64_t count_settings(const std::vector<VariedKey>& varied, int64_t most) {
  int64_t count = 1;
  for (const VariedKey& key : varied) {
    count *= static_cast<int64_t>(key.values.size());
    if (count > most) return most + 1;
  }
  return count;
}

SettingValues setting_at(const std::vector<VariedKey>& varied, int64_t index) {
  SettingValues values(varied.size());
  for (size_t i = varied.size(); i-- > 0;) {
    const auto count = static_cast<int64_t>(varied[i].values.size());
    values[i] = {varied[i].key, varied[i].values[static_cast<size_t>(index % count)]};
    index /= count;
  }
  return values;
}

/// Draws `drawn` distinct numbers from [0, count) and returns them sorted. The result depends only on the
/// arguments.
std::vector<int64_t> draw(int64_t count, int64_t drawn, int64_t seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::set<int64_t> chosen;
  while (static_cast<int64_t>(chosen.size()) < drawn)
    chosen.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(count)));
  return {chosen.begin(), chosen.end()};
}

/// Returns a hash of the text as eight hexadecimal digits.
std::string hash_of(const std::string& text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return fmt::format("{:08x}", checksum(Parts(&bytes, 1)) & 0xffffffff);
}

/// Returns the text if it is valid in a folder name; else a valid replacement that ends in a hash of the
/// text.
std::string name_part(const std::string& text) {
  constexpr size_t kMost = 40;
  constexpr std::string_view kPlain = "._+-";
  std::string name;
  for (const char c : text.substr(0, kMost))
    name += std::isalnum(static_cast<unsigned char>(c)) || kPlain.find(c) != std::string_view::npos ? c : '-';
  return name == text ? name : fmt::format("{}-{}", name, hash_of(text));
}

}  // namespace

SweepSets parse_sweep_sets(const std::vector<std::string>& sets) {
  SweepSets result;
  std::set<std::string> keys;
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    const std::vector<std::string> values =
        equals == std::string::npos ? std::vector<std::string>() : split_values(set.substr(equals + 1));
    if (values.size() < 2) {  // not varied; errors in this --set are reported when the configuration is read
      result.fixed.push_back(set);
      continue;
    }
    check_values(set, values);
    const std::string key = set.substr(0, equals);
    if (!keys.insert(key).second)
      throw UserError(
          fmt::format("--set {}: the key '{}' is given in two --set options; give all values of the key in "
                      "one --set option",
                      set, key));
    result.varied.push_back({key, values});
  }
  return result;
}

std::vector<SettingValues> sweep_settings(const std::vector<VariedKey>& varied, std::optional<int64_t> random,
                                          int64_t seed) {
  constexpr int64_t kMostToDrawFrom = int64_t{1} << 52;
  const int64_t all = count_settings(varied, kMostToDrawFrom);
  const int64_t wanted = std::min(all, random.value_or(all));
  if (wanted > kMostSettings)
    throw UserError(
        fmt::format("expected at most {} settings, found {}; use --random N to train only N of them",
                    format_count(kMostSettings), all > kMostToDrawFrom ? "far more" : format_count(wanted)));
  std::vector<SettingValues> settings;
  if (wanted == all) {
    for (int64_t i = 0; i < all; ++i) settings.push_back(setting_at(varied, i));
  } else {
    for (const int64_t i : draw(all, wanted, seed)) settings.push_back(setting_at(varied, i));
  }
  return settings;
}

std::string name_of_setting(const SettingValues& values) {
  constexpr size_t kMost = 150;
  std::vector<std::string> keys;
  for (const auto& [key, value] : values) keys.push_back(key);
  const std::vector<std::string> shorts = short_keys(keys);
  std::string name;
  for (size_t i = 0; i < values.size(); ++i)
    name += fmt::format("{}{}={}", i == 0 ? "" : ",", name_part(shorts[i]), name_part(values[i].second));
  return name.size() <= kMost ? name : fmt::format("{}-{}", name.substr(0, kMost), hash_of(name));
}

}  // namespace dtrain
