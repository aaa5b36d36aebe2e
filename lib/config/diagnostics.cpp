#include "config/diagnostics.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtrain {

std::string Mark::str() const {
  if (!file) return {};
  return line > 0 ? fmt::format("{}:{}:{}", *file, line, column) : *file;
}

void Diagnostics::error(const Mark& mark, std::string message) {
  items_.push_back({mark, std::move(message)});
}

void Diagnostics::throw_if_errors() const {
  if (items_.empty()) return;
  std::map<std::string, size_t>
      files;  // numbered by first appearance: the main file comes before what it includes
  std::vector<std::tuple<size_t, int, int, const Item*>> order;
  for (const Item& item : items_) {
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
    const std::string where = item->mark.str();
    std::string text = fmt::format("{}error: {}", where.empty() ? "" : where + ": ", item->message);
    if (std::find(lines.end() - std::min<ptrdiff_t>(16, std::ssize(lines)), lines.end(), text) == lines.end())
      lines.push_back(std::move(text));
  }
  constexpr size_t kMost = 100;
  if (lines.size() > kMost) {
    const size_t rest = lines.size() - kMost;
    lines.resize(kMost);
    lines.push_back(fmt::format("... and {} more", rest));
  }
  throw UserError(fmt::format("{}", fmt::join(lines, "\n")));
}

namespace {

/// Edits (insertion, deletion, replacement, swap of neighbours) from one word to the other: Damerau's
/// distance, optimal string alignment.
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

}  // namespace

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::string* nearest = nullptr;
  size_t least = 0;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size()),
                 shorter = std::min(word.size(), candidate.size());
    const size_t allowed = std::max<size_t>(1, longer / 3);
    if (longer - shorter > allowed || shorter == 0) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance > allowed || distance >= longer || (nearest && distance >= least)) continue;
    nearest = &candidate;
    least = distance;
  }
  return nearest ? fmt::format("; did you mean '{}'?", *nearest) : "";
}

std::string suggestion_or_list(std::string_view word, std::span<const std::string> candidates) {
  std::string near = suggestion(word, candidates);
  if (near.empty() && !candidates.empty())
    near = fmt::format("; expected one of {}", fmt::join(candidates, ", "));
  return near;
}

}  // namespace dtrain
