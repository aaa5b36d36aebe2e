#include "train/split_overlap.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include <fmt/format.h>

#include "data/caches/cache.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

std::shared_ptr<const Dataset> open(const RunConfig& config, const SplitSpec& split) {
  return open_split(config.dataset, split, config.graph.input_specs(), config.targets());
}

bool of_same_files(const DataIdentity& a, const DataIdentity& b) {
  return a.samples == b.samples &&
         std::equal(a.files.begin(), a.files.end(), b.files.begin(), b.files.end(),
                    [](const auto& x, const auto& y) { return x.bytes == y.bytes && x.digest == y.digest; });
}

/// Returns a description of how the splits were drawn, such as " by seed 1: validation 0.2"; "" if they were
/// not drawn.
std::string draw_of(const DataIdentity& identity) {
  const size_t at = identity.drawn.find(" by ");
  return at == std::string::npos ? "" : identity.drawn.substr(at);
}

int64_t count_common(std::vector<int64_t> a, std::vector<int64_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<int64_t> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return static_cast<int64_t>(common.size());
}

/// Returns advice such as "; split: {seed: 1} ..." if the other run drew its splits; else "".
std::string advice(const RunConfig& other) {
  const auto& seed = other.dataset.facts.split_seed;
  return seed ? fmt::format(
                    "; to use the same splits as that run, set `split: {{seed: {}}}` and the same fractions",
                    *seed)
              : "";
}

}  // namespace

std::vector<std::string> warnings_of_overlap(const RunConfig& config, const Checkpoint& other) {
  const TrainingState state = saved_state(other);
  const auto trained = state.data.find("train");
  std::vector<std::string> warnings;
  if (trained == state.data.end()) return warnings;
  for (const char* name : {"validation", "test"}) {
    const SplitSpec* split = config.dataset.find(name);
    if (!split) continue;
    try {
      const auto evaluated = open(config, *split);
      const DataIdentity mine = evaluated->identity();
      if (mine.files.empty() || !of_same_files(mine, trained->second) ||
          (!mine.drawn.empty() && draw_of(mine) == draw_of(trained->second)))
        continue;
      RunConfig before = saved_config(other, {});
      // Does not use the cache of the other run, because it may contain different data by now.
      before.dataset.cache = registry<Cache>().make("none");
      const int64_t common =
          count_common(evaluated->rows_in_files(), open(before, *before.dataset.train)->rows_in_files());
      if (common > 0)
        warnings.push_back(
            fmt::format("{}: this model was trained on {} of the {} samples of the split '{}', so its scores "
                        "on this split say little about unseen samples{}",
                        other.path(), common, evaluated->size(), name, advice(before)));
    } catch (const Error&) {  // the files are missing or have changed, which the evaluation reports
      continue;
    }
  }
  return warnings;
}

}  // namespace dtrain
