#include "data/splits/split_rows.h"

#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "data/opening.h"
#include "data/readers/reader.h"
#include "data/splits/draw_split.h"
#include "data/stages/number_at.h"

namespace dtrain {

namespace {

/// Returns the seed for splits that are drawn from the split `of`. This is the option `seed` of one of these
/// splits if it is set, otherwise the seed in the facts of the training data, otherwise the seed of the run.
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
    throw UserError(
        fmt::format("stratify: the target must have one class per sample, but found {}",
                    column ? fmt::format("{} numbers per sample", column->row_elements()) : "no target"));
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
        fmt::format("stratify: the target must consist of classes, but has {} different values in {} "
                    "samples; remove 'stratify' if the target is a number",
                    distinct.size(), labels.size()));
  return labels;
}

/// Returns the name of the split from which samples are drawn: the source of `split` if it is drawn, else
/// `split` itself.
std::string source_of(const DatasetSpec& spec, const SplitSpec& split) {
  return split.drawn ? split.drawn->of : spec.name_of(split);
}

}  // namespace

double held_out_fraction(const DatasetSpec& spec, const SplitSpec& split) {
  const std::string of = source_of(spec, split);
  double sum = 0;
  for (const char* name : kSplitNames)
    if (const SplitSpec* other = spec.find(name); other && other->drawn && other->drawn->of == of)
      sum += other->drawn->fraction;
  return sum;
}

std::optional<DrawnRows> draw_rows(const DatasetSpec& spec, const SplitSpec& split, const CachedColumns& held,
                                   int64_t from, int64_t to, size_t inputs) {
  const std::string of = source_of(spec, split);
  const std::optional<int64_t> overlap = split.reader->overlap();
  std::vector<Draw> draws;
  std::vector<double> labels;
  DrawnRows drawn;
  if (!overlap) drawn.seed = seed_of_draws(spec, of);
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
      overlap
          ? fmt::format("{} of '{}' by position: {}", found ? "at the end" : "left", of, drawn.words)
          : fmt::format("{} of '{}' by seed {}: {}", found ? "drawn" : "left", of, *drawn.seed, drawn.words);
  drawn.rows = std::move(
      (overlap ? cut_splits(to - from, draws, *overlap) : draw_splits(to - from, draws, *drawn.seed))[mine]);
  if (drawn.rows.empty())
    throw UserError(
        located(split.mark, fmt::format("split: this split gets none of the {0} samples of '{1}'; change the "
                                        "fractions of the splits that are drawn from '{1}'",
                                        to - from, of)));
  for (int64_t& row : drawn.rows) row += from;
  return drawn;
}

}  // namespace dtrain
