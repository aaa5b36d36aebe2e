#include "data/splits/split_rows.h"

#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "data/opening.h"
#include "data/splits/draw_split.h"
#include "data/stages/number_at.h"

namespace dtrain {

namespace {

/// Returns the seed of draws from split `of`: the `seed` of one of the drawn splits, else the facts' seed,
/// else the run's.
uint64_t seed_of_draws(const DatasetSpec& spec, const std::string& of) {
  for (const char* name : kSplitNames)
    if (const SplitSpec* split = spec.find(name);
        split && split->drawn && split->drawn->of == of && split->drawn->seed)
      return static_cast<uint64_t>(*split->drawn->seed);
  return spec.facts.split_seed.value_or(spec.seed);
}

/// Returns the class of each row in [from, to).
std::vector<double> labels_of(const CachedColumns& held, int64_t from, int64_t to, size_t inputs) {
  const Column* column = inputs < held.columns.size() ? held.columns[inputs].get() : nullptr;
  if (!column || column->row_elements() != 1)
    throw UserError("stratify: expected a target with one class per sample, found none");
  std::vector<double> labels(static_cast<size_t>(to - from));
  std::set<double> distinct;
  for_each_block(*column, from - held.first, to - held.first, [&](int64_t first, int64_t count, size_t) {
    const auto block = allocate_bytes(static_cast<size_t>(count) * column->row_bytes());
    column->read(row_numbers(first, count), block.get());
    for (int64_t i = 0; i < count; ++i) {
      const double label = number_at(block.get(), column->spec().dtype, i);
      labels[static_cast<size_t>(first + held.first - from + i)] = label;
      distinct.insert(label);
    }
  });
  if (distinct.size() > labels.size() / 2)
    throw UserError(
        fmt::format("stratify: expected classes, found {} different values in {} samples; leave stratify out "
                    "if the target is a number",
                    distinct.size(), labels.size()));
  return labels;
}

}  // namespace

std::optional<DrawnRows> draw_rows(const DatasetSpec& spec, const SplitSpec& split, const CachedColumns& held,
                                   int64_t from, int64_t to, size_t inputs) {
  const std::string of = split.drawn ? split.drawn->of : spec.name_of(split);
  std::vector<Draw> draws;
  std::vector<double> labels;
  DrawnRows drawn{{}, "", seed_of_draws(spec, of)};
  size_t mine = 0;
  bool found = false;
  for (const char* name : kSplitNames) {
    const SplitSpec* other = spec.find(name);
    if (!other || !other->drawn || other->drawn->of != of) continue;
    if (other == &split) {
      mine = draws.size();
      found = true;
    }
    if (other->drawn->stratify && labels.empty())
      labels = at_place(other->mark, [&] { return labels_of(held, from, to, inputs); });
    draws.push_back({other->drawn->fraction, {}});
    if (other->drawn->stratify) draws.back().labels = labels;
    drawn.words += fmt::format("{}{} {}{}", drawn.words.empty() ? "" : ", ", name, other->drawn->fraction,
                               other->drawn->stratify ? " stratified" : "");
  }
  if (draws.empty()) return std::nullopt;
  if (!found) mine = draws.size();
  drawn.words =
      fmt::format("{} of '{}' by seed {}: {}", found ? "drawn" : "left", of, drawn.seed, drawn.words);
  drawn.rows = std::move(draw_splits(to - from, draws, drawn.seed)[mine]);
  if (drawn.rows.empty())
    throw UserError(
        located(split.mark, fmt::format("split: none of the {} samples is {}", to - from, drawn.words)));
  for (int64_t& row : drawn.rows) row += from;
  return drawn;
}

}  // namespace dtrain
