#include "config/diagnostics.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/names/aliases.h"
#include "config/yaml/text.h"

namespace dtrain {

std::string Mark::str() const {
  if (!file) return {};
  return line > 0 ? fmt::format("{}:{}:{}", *file, line, column) : *file;
}

void Diagnostics::error(const Mark& mark, std::string message) {
  items_.push_back({mark, std::move(message)});
}

void Diagnostics::warning(const Mark& mark, std::string message) {
  warnings_.push_back({mark, std::move(message)});
}

namespace {

/// Formats "file:line:column: error: message".
std::string line_of(const Mark& mark, std::string_view kind, std::string_view message) {
  const std::string where = mark.str();
  return fmt::format("{}{}{}: {}", where, where.empty() ? "" : ": ", kind, message);
}

/// Returns one line per item, sorted by location, without repeated messages at the same location.
std::vector<std::string> lines_of(const std::vector<Diagnostics::Item>& items, std::string_view kind) {
  using Item = Diagnostics::Item;
  std::map<std::string, size_t>
      files;  // numbered by first appearance: the main file comes before included ones
  std::vector<std::tuple<size_t, int, int, const Item*>> order;
  for (const Item& item : items) {
    const size_t file = files.emplace(item.mark.file ? *item.mark.file : "", files.size()).first->second;
    order.emplace_back(file, item.mark.line, item.mark.column, &item);
  }
  const auto place = [](const auto& entry) {
    return std::tie(std::get<0>(entry), std::get<1>(entry), std::get<2>(entry));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });

  std::vector<std::string> lines;
  for (const auto& [file, line, column, item] : order) {
    std::string text = line_of(item->mark, kind, item->message);
    if (std::find(lines.end() - std::min<ptrdiff_t>(16, std::ssize(lines)), lines.end(), text) == lines.end())
      lines.push_back(std::move(text));
  }
  constexpr size_t kMost = 100;
  if (lines.size() > kMost) {
    const size_t rest = lines.size() - kMost;
    lines.resize(kMost);
    lines.push_back(fmt::format("... and {} more", rest));
  }
  return lines;
}

}  // namespace

void Diagnostics::throw_if_errors() const {
  if (!items_.empty()) throw UserError(fmt::format("{}", fmt::join(lines_of(items_, "error"), "\n")));
}

std::vector<std::string> Diagnostics::warnings() const {
  return lines_of(warnings_, "warning");
}

UserError error_at(const Mark& mark, const std::string& message) {
  return UserError(line_of(mark, "error", message));
}

namespace {

/// Returns the number of edits (insertion, deletion, replacement, swap of adjacent letters) between two
/// words: the Damerau distance (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// Returns the candidate that is most similar to a misspelt name, or null if none is similar enough.
const std::string* nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::string plain_word = plain_name(word);
  const std::string* found = nullptr;
  size_t least = 0;
  for (const std::string& candidate : candidates) {
    const std::string plain_candidate = plain_name(candidate);
    if (plain_candidate == plain_word && !plain_word.empty()) return &candidate;
    const size_t longer = std::max(word.size(), candidate.size()),
                 shorter = std::min(word.size(), candidate.size());
    const size_t allowed = std::max<size_t>(1, longer / 3);
    if (longer - shorter > allowed || shorter == 0) continue;
    const size_t distance =
        std::min(edit_distance(word, candidate), 1 + edit_distance(plain_word, plain_candidate));
    if (distance > allowed || distance >= longer || (found && distance >= least)) continue;
    found = &candidate;
    least = distance;
  }
  return found;
}

}  // namespace

bool is_near(std::string_view word, std::span<const std::string> candidates) {
  return nearest(word, candidates) != nullptr;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const auto is_before_colon = [&](const std::string& name) {
    return word.substr(0, word.find(':')) == name;
  };
  if (std::any_of(candidates.begin(), candidates.end(), is_before_colon))
    if (const std::string advice = advice_for_colon(ConfigNode::scalar(std::string(word))); !advice.empty())
      return advice;
  const std::string* near = nearest(word, candidates);
  if (!near || plain_name(*near) != plain_name(word)) {
    const Alias alias = find_alias(word, candidates);
    if (!alias.advice.empty()) return fmt::format("; {}", alias.advice);
    if (!alias.meant.empty()) return fmt::format("; did you mean '{}'?", alias.meant);
  }
  return near ? fmt::format("; did you mean '{}'?", *near) : "";
}

std::string file_suggestion(std::string_view name, std::span<const std::string> candidates) {
  constexpr size_t kMostInExtension = 2;
  const auto parts = [](std::string_view text) {
    const size_t dot = std::min(text.rfind('.'), text.size());
    return std::pair(text.substr(0, dot), text.substr(dot));
  };
  const auto [stem, extension] = parts(name);
  const std::string* found = nullptr;
  size_t least = 0;
  for (const std::string& candidate : candidates) {
    const auto [other_stem, other_extension] = parts(candidate);
    const size_t longer = std::max(stem.size(), other_stem.size());
    const size_t in_stem = edit_distance(stem, other_stem),
                 in_extension = edit_distance(extension, other_extension);
    if (in_stem > std::max<size_t>(1, longer / 3) || in_stem >= longer || in_extension > kMostInExtension)
      continue;
    if (found && in_stem + in_extension >= least) continue;
    found = &candidate;
    least = in_stem + in_extension;
  }
  return found ? fmt::format("; did you mean '{}'?", *found) : "";
}

std::string suggestion_or_list(std::string_view word, std::span<const std::string> candidates) {
  std::string near = suggestion(word, candidates);
  if (near.empty() && !candidates.empty())
    near = fmt::format("; expected one of {}", fmt::join(candidates, ", "));
  return near;
}

std::string located(const Mark& place, const std::string& message) {
  const std::string where = place.str();
  return where.empty() ? message : fmt::format("{}: error: {}", where, message);
}

}  // namespace dtrain
