#include "engine/update/update.h"

#include "ops/math/pairwise.h"

namespace dtrain {

Update::Update(const ParameterLayout& layout, const Optimizer* optimizer, const Options& options)
    : layout_(layout), weight_rules_(layout), options_(options) {
  if (optimizer) {
    rule_ = optimizer->rule();
    slots_ = slot_layouts(layout, optimizer->slots());
  }
  if (options.average_decay) slots_.emplace_back(layout, Optimizer::Slot{std::string(kAverage)});
  add_trained({});
  add_statistics();
}

void Update::set_slots_since(const std::map<std::string, int64_t>& since) {
  groups_.clear();
  parameters_.clear();
  add_trained(since);
}

/// Divides the parameters into groups. Each group contains adjacent parameters with the same options, so that
/// one call can update the whole group. A model without train.groups has only one group.
void Update::add_trained(const std::map<std::string, int64_t>& slots_since) {
  for (const ParameterSlice* slice : layout_.by_offset({0, layout_.trained()})) {
    const ParameterTraining& training = slice->training;
    const auto since = slots_since.find(slice->path());
    const GroupRule rule{training.learning_rate_factor, training.weight_decay.has_value(),
                         training.weight_decay.value_or(0.0f), options_.clip_value,
                         since == slots_since.end() ? 0 : static_cast<uint64_t>(since->second)};
    if (needs_directions()) {
      if (!parameters_.empty()) parameters_.back().range.end = slice->offset;
      parameters_.push_back({{slice->offset, layout_.trained()}, slice->shape, rule});
    }
    if (!groups_.empty() && groups_.back().rule == rule) continue;
    if (!groups_.empty()) groups_.back().range.end = slice->offset;
    groups_.push_back({{slice->offset, layout_.trained()}, rule});
  }
}

/// Joins adjacent statistics with the same momentum, so that one call can update them. The gaps between the
/// slices contain zeros, which the call does not change.
void Update::add_statistics() {
  for (const ParameterSlice* slice : layout_.by_offset({layout_.trained(), layout_.with_gradient()})) {
    const float momentum = slice->moving_average.value();
    if (statistics_.empty() || statistics_.back().momentum != momentum)
      statistics_.push_back({{slice->offset, slice->offset}, momentum});
    statistics_.back().range.end = slice->offset + slice->elements();
  }
}

Range Update::trained(Range range) const {
  return overlap(range, {0, layout_.trained()});
}

/// Returns pointers into the rule's slots for element `begin` of the layout. The average of the weights is
/// not included.
Update::Slots Update::slots_at(const ParameterMemory& memory, int64_t begin) const {
  Slots slots;
  slots.count = slots_.size() - (options_.average_decay ? 1 : 0);
  for (size_t i = 0; i < slots.count; ++i) slots.at[i] = memory.slot(i, begin);
  return slots;
}

void Update::update_average(Ops& ops, const StepState* state, const ParameterMemory& memory,
                            Range range) const {
  if (range.size() == 0) return;
  ops.update(math::MovingAverage{*options_.average_decay},
             {.state = state,
              .weights = memory.slot(slots_.size() - 1, range.begin),
              .gradient = memory.values(range.begin),
              .slots = {},
              .n = range.size()});
}

std::vector<PairwiseTerm> Update::terms(Range range) const {
  std::vector<PairwiseTerm> terms;
  for (size_t i = 0; i < squares(); ++i) {
    const Range whole = parameters_[i / 2].range, mine = overlap(range, whole);
    if (mine.size() > 0)
      add_terms(terms, static_cast<int64_t>(i), mine, (mine.begin - whole.begin) / math::kSquaresGrain,
                grains_of(whole.size()));
  }
  return terms;
}

/// Replaces the gradients in `range` by the directions of the step. For a weight with two or more axes, the
/// slots contain the mean squares of the gradient's rows and columns. Other weights have a slot with the mean
/// square of each element.
void Update::find_factored_directions(Ops& ops, const StepState* state, const ParameterMemory& memory,
                                      float* gradient, Range range) const {
  for (const Parameter& parameter : parameters_) {
    const int64_t begin = parameter.range.begin, elements = parameter.shape.elements();
    if (overlap(range, parameter.range).size() == 0 || elements == 0) continue;
    float* const its = gradient + (begin - range.begin);
    const Shape& shape = parameter.shape;
    if (shape.rank() < 2) {
      const std::array<float*, 2> slots{memory.slot(2, begin), its};  // the mean square, the direction
      ops.update(rule_, {.state = state,
                         .group = parameter.rule,
                         .weights = memory.values(begin),
                         .gradient = its,
                         .slots = slots,
                         .n = elements});
    } else {
      const int64_t rows = shape[shape.rank() - 2], columns = shape.back();
      ops.find_factored_direction(std::get<math::Adafactor>(rule_), {.state = state,
                                                                     .group = parameter.rule,
                                                                     .weights = memory.values(begin),
                                                                     .gradient = its,
                                                                     .row_means = memory.slot(0, begin),
                                                                     .column_means = memory.slot(1, begin),
                                                                     .matrices = elements / (rows * columns),
                                                                     .rows = rows,
                                                                     .columns = columns});
    }
  }
}

void Update::find_elementwise_directions(Ops& ops, const StepState* state, const ParameterMemory& memory,
                                         float* gradient, Range range) const {
  for (const Group& group : groups_) {
    const Range mine = overlap(range, group.range);
    if (mine.size() == 0) continue;
    float* const its = gradient + (mine.begin - range.begin);
    Slots slots = slots_at(memory, mine.begin);
    slots.at[slots.count++] = its;  // the direction
    ops.update(rule_, {.state = state,
                       .group = group.rule,
                       .weights = memory.values(mine.begin),
                       .gradient = its,
                       .slots = slots.span(),
                       .n = mine.size()});
  }
}

void Update::find_directions(Ops& ops, const StepState* state, const ParameterMemory& memory, float* gradient,
                             Range range, std::span<const PairwiseTerm> terms, double* squares) const {
  if (needs_whole_parameters())
    find_factored_directions(ops, state, memory, gradient, range);
  else
    find_elementwise_directions(ops, state, memory, gradient, range);
  std::vector<std::span<const float>> arrays;
  for (const PairwiseTerm& term : terms) {
    const int64_t at = term.values.begin;
    const float* const values = term.array % 2 == 1 ? gradient + (at - range.begin) : memory.values(at);
    arrays.emplace_back(values, static_cast<size_t>(term.values.size()));
  }
  ops.sums_of_squares(arrays, squares);
}

/// Enqueues the second phase: moves the weights in `range` along `directions`.
void Update::apply_directions(Ops& ops, const StepState* state, const ParameterMemory& memory,
                              const float* directions, Range range, const double* squares) const {
  const Range mine = trained(range);
  std::vector<ParameterPart> parts;
  for (const Parameter& parameter : parameters_) {
    const Range part = overlap(mine, parameter.range);
    if (part.size() > 0)
      parts.push_back({part.size(), parameter.shape.elements(), parameter.rule.learning_rate_factor});
    if (parts.empty()) squares += 2;  // skips the sums of a parameter before the range
  }
  if (parts.empty()) return;
  ops.apply_directions(direction_rule_of(rule_), parts, squares,
                       {.state = state,
                        .weights = memory.values(mine.begin),
                        .gradient = directions + (mine.begin - range.begin),
                        .slots = {},
                        .weights_copy = memory.copy(mine.begin),
                        .n = mine.size()});
}

void Update::apply(Ops& ops, const StepState* state, const ParameterMemory& memory, const float* gradient,
                   Range range, const double* squares) const {
  if (needs_directions()) {
    apply_directions(ops, state, memory, gradient, range, squares);
  } else {
    for (const Group& group : groups_) {
      const Range mine = overlap(range, group.range);
      if (mine.size() == 0) continue;
      ops.update(rule_, {.state = state,
                         .group = group.rule,
                         .weights = memory.values(mine.begin),
                         .gradient = gradient + (mine.begin - range.begin),
                         .slots = slots_at(memory, mine.begin).span(),
                         .weights_copy = memory.copy(mine.begin),
                         .n = mine.size()});
    }
  }
  if (options_.average_decay) update_average(ops, state, memory, trained(range));
  for (const Statistics& statistics : statistics_) {
    const Range mine = overlap(range, statistics.range);
    if (mine.size() > 0)
      ops.update(math::MovingAverage{statistics.momentum}, {.state = state,
                                                            .weights = memory.values(mine.begin),
                                                            .gradient = gradient + (mine.begin - range.begin),
                                                            .slots = {},
                                                            .n = mine.size()});
  }
}

}  // namespace dtrain
