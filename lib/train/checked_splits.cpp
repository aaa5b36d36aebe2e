#include "train/checked_splits.h"

#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "run/row_weights.h"
#include "train/evaluation/evaluation.h"
#include "train/sample_check.h"

namespace dtrain {

namespace {

/// Larger splits are not checked completely, because that would take a long time. Training reports errors in
/// the remaining samples when it reads these samples.
constexpr int64_t kMostSamples = 10'000'000;
constexpr size_t kMostBytes = size_t{1} << 30;  // maximum bytes per column

/// Reads a split to find samples that training would reject. Returns a warning, or "".
std::string look_through(const RunConfig& config, const Dataset& data, const char* name) {
  try {
    const std::string called = fmt::format("the split '{}'", name);
    if (data.size() <= kMostSamples) check_samples(config, data, called);
    check_readable(data, kMostBytes);
    if (data.size() > kMostSamples) return "";
    const std::string found = describe_not_finite(config, data, called, kMostBytes);
    return found.empty() ? "" : found + ", which usually makes the loss NaN; remove or replace such values";
  } catch (const UserError& error) {
    throw UserError(located(config.dataset.find(name)->mark, error.what()));
  }
}

/// Returns true if the split is drawn from one of the splits `names`, directly or through other splits.
bool is_drawn_from(const DatasetSpec& dataset, const SplitSpec* split, const std::set<std::string>& names) {
  for (; split && split->drawn; split = dataset.find(split->drawn->of))
    if (names.contains(split->drawn->of)) return true;
  return false;
}

}  // namespace

std::vector<CheckedSplit> check_splits(RunConfig& config, const Configured<Cache>& cache,
                                       const std::function<void(const std::string&)>& warn) {
  DatasetSpec with_cache = config.dataset;
  with_cache.cache = cache;
  std::vector<std::string> mistakes;
  // Messages are reported once, even if several splits have the same message.
  std::set<std::string> failed, reported;
  std::vector<CheckedSplit> checked;
  for (const char* name : kSplitNames) {
    const SplitSpec* split = config.dataset.find(name);
    // Skips a split that is drawn from a split with errors, because it would report the same errors again.
    if (!split || is_drawn_from(config.dataset, split, failed)) continue;
    try {
      check_cache(with_cache, name);
      const auto data = open_samples(config, *split, std::string_view(name) == "train");
      for (const std::string& warning : data->warnings())
        if (reported.insert(warning).second) warn(warning);
      if (checked.empty()) config.dataset.facts = data->facts();
      if (const std::string warning = look_through(config, *data, name); !warning.empty()) warn(warning);
      if (split == config.dataset.find("train"))
        for (const std::string& warning : class_warnings(config, data->facts())) warn(warning);
      checked.push_back({name, data->size(), split == config.dataset.find("test") ? nullptr : data});
    } catch (const UserError& error) {
      if (reported.insert(error.what()).second) mistakes.push_back(error.what());
      failed.insert(name);
    }
  }
  if (!mistakes.empty()) throw UserError(fmt::format("{}", fmt::join(mistakes, "\n")));
  return checked;
}

}  // namespace dtrain
