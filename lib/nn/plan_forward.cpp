// The forward half of building a plan: the batch's columns, the layers' calls, losses and metrics, outputs.
#include <algorithm>

#include "nn/plan_builder.h"

namespace dtrain {

/// The batch is written before the first instruction, so the columns live from then on.
int PlanBuilder::place_column(const TensorSpec& spec, const std::string& name, int slot, size_t bytes) {
  const int number = add_buffer(name, slot, bytes);
  touch(number, 0);
  plan_.columns_.push_back({number, {nullptr, spec.shape.prepended(plan_.batch()), spec.dtype}});
  return number;
}

void PlanBuilder::place_columns() {
  for (const int input : graph_.inputs) {
    const ValueRef ref{input, 0};
    Value& v = value(value_of(ref));
    v.buffer = place_column(graph_.spec(ref), node(input).name, v.slot, value_bytes(ref, v.slot));
    v.computed = true;
  }
  plan_.input_columns_ = plan_.columns_.size();
  if (!wants_losses()) return;
  for (const Head& head : heads_) {
    const auto elements = static_cast<size_t>(plan_.batch() * head.target.shape.elements());
    targets_.push_back(place_column(head.target, "target of " + value_name(head.output),
                                    slot_of(head.output.node), elements * bytes_of(head.target.dtype)));
  }
  if (const auto& weights = heads_[0].weights)
    weights_ = place_column(*weights, "weights", slot_of(heads_[0].output.node),
                            static_cast<size_t>(plan_.batch() * weights->shape.elements()) * sizeof(float));
  if (weights_ >= 0) send_weights_column();
}

/// To the slots of the other heads.
void PlanBuilder::send_weights_column() {
  for (const Head& head : heads_) {
    const int slot = slot_of(head.output.node);
    if (slot != plan_.buffer(weights_).slot && !weights_links_.contains(slot))
      weights_links_[slot] = emit_send("weights", weights_, slot);
  }
}

int PlanBuilder::weights_on(int slot) {
  if (weights_ < 0 || plan_.buffer(weights_).slot == slot) return weights_;
  const auto [entry, is_new] = weights_buffers_.try_emplace(slot, -1);
  if (is_new)
    entry->second = emit_receive("weights", weights_links_.at(slot), slot, plan_.buffer(weights_).bytes);
  return entry->second;
}

/// Parameters that nodes on other slots share are sent to those slots.
void PlanBuilder::send_parameters() {
  for (int i = 0; i < end(); ++i) {
    const int from = layout_.owner_slot(i), to = slot_of(i);
    if (from == to || !node(i).layer) continue;
    for (size_t k = 0; k < node(i).parameters.size(); ++k) {
      const ParameterSlice& slice = slice_of(i, k);
      const auto [entry, is_new] = parameter_links_.try_emplace({&slice, to}, -1);
      if (!is_new) continue;
      const size_t bytes = static_cast<size_t>(slice.elements()) * sizeof(float);
      entry->second = add_link(from, to, bytes, Link::Keeping::lent);
      emit(from, slice.path() + " send", {}, {},
           [number = entry->second, link = plan_.links_.back().link.get(), from, offset = slice.offset,
            bytes](Frame& frame) {
             frame.note_sent(number, link->send(frame.arrays(from).values + offset, bytes));
           });
    }
  }
}

std::vector<ParameterPlace> PlanBuilder::parameter_places(int i) {
  if (options_.gathers_parameters && !node(i).parameters.empty()) return gather_parameters(i);
  std::vector<ParameterPlace> places;
  for (size_t k = 0; k < node(i).parameters.size(); ++k)
    places.push_back(parameter_place(i, static_cast<int>(k)));
  return places;
}

ParameterPlace PlanBuilder::parameter_place(int i, int index) {
  const ParameterSlice& slice = slice_of(i, static_cast<size_t>(index));
  const int slot = slot_of(i);
  if (layout_.owner_slot(i) == slot) return {.offset = slice.offset};
  const auto [entry, is_new] = parameter_places_.try_emplace({&slice, slot});
  ParameterPlace& place = entry->second;
  if (!is_new) return place;
  const std::string name = slice.path();
  place.buffer = emit_receive(name, parameter_links_.at({&slice, slot}), slot,
                              static_cast<size_t>(slice.elements()) * sizeof(float));
  place.weights = place.buffer;
  const DType type = ops(slot).compute_type();
  if (type == DType::float32) return place;
  place.weights = add_buffer(name, slot, static_cast<size_t>(slice.elements()) * bytes_of(type));
  emit(slot, name + " cast", {place.buffer}, {place.weights},
       [ops = &ops(slot), place, type, n = slice.elements()](Frame& frame) {
         ops->cast(frame.at(place.weights), type, frame.at(place.buffer), DType::float32, n);
       });
  return place;
}

void PlanBuilder::emit_reorder(ValueRef ref, int slot, Layout from, Layout to, int src, int dst) {
  plan_.reorders_.push_back(ops(slot).reorder(image_batch(batch_shape(ref)), from, to));
  emit(slot, value_name(ref) + " reorder", {src}, {dst},
       [reorder = plan_.reorders_.back().get(), src, dst](Frame& frame) {
         reorder->run(frame.at(src), frame.at(dst));
       });
}

int PlanBuilder::add_link(int from, int to, size_t bytes, Link::Keeping keeping) {
  // A slot that is not far yet with a microbatch has as many under way as it may; the other is done with
  // them.
  const int most = options_.in_flight.empty() ? 1
                                              : std::max(options_.in_flight[static_cast<size_t>(from)],
                                                         options_.in_flight[static_cast<size_t>(to)]);
  plan_.links_.push_back({from, std::make_unique<Link>(ops(from).context(), ops(to).context(), bytes, keeping,
                                                       most, options_.spin)});
  const Link& link = *plan_.links_.back().link;
  if (link.copies())
    plan_.arena_bytes_[static_cast<size_t>(link.copies_are_with_receiver() ? to : from)].links += bytes;
  return static_cast<int>(plan_.links_.size()) - 1;
}

/// What is sent forward stays as it is to the end of the microbatch, as the other slot reads it whenever it
/// comes there. A gradient is copied: its slot is done with the microbatch, and goes on to another one, long
/// before a slot far behind it reads what comes back by a skip.
int PlanBuilder::emit_send(const std::string& name, int src, int to) {
  const bool lent = phase_ != Phase::backward;
  PlanBuffer& buffer = plan_.buffers_[static_cast<size_t>(src)];
  buffer.is_sent = lent;
  const int number =
      add_link(buffer.slot, to, buffer.bytes, lent ? Link::Keeping::lent : Link::Keeping::copied);
  emit(buffer.slot, name + " send", {src}, {},
       [number, link = plan_.links_.back().link.get(), src, bytes = buffer.bytes, lent](Frame& frame) {
         const uint64_t sent = link->send(frame.at(src), bytes);
         if (lent) frame.note_sent(number, sent);
       });
  if (lent) keep_to_the_end(src);
  return number;
}

int PlanBuilder::emit_receive(const std::string& name, int number, int slot, size_t bytes) {
  const int dst = add_buffer(name, slot, bytes);
  emit(slot, name + " receive", {}, {dst},
       [link = plan_.links_[static_cast<size_t>(number)].link.get(), dst, bytes](Frame& frame) {
         link->receive(frame.at(dst), bytes);
       });
  return dst;
}

void PlanBuilder::send_outputs(int i) {
  for (const int v : state(i).sent) {
    const int from = value(v).made_from;
    compute(from);
    value(v).link = emit_send(value_name(value(v).of), value(from).buffer, value(v).slot);
  }
}

void PlanBuilder::compute(int v) {
  if (value(v).computed) return;
  value(v).computed = true;
  const ValueRef ref = value(v).of;
  const size_t bytes = value_bytes(ref, value(v).slot);
  if (value(v).link >= 0) {
    value(v).buffer = emit_receive(value_name(ref), value(v).link, value(v).slot, bytes);
    return;
  }
  compute(value(v).made_from);
  const Value source = value(value(v).made_from);
  value(v).buffer = add_buffer(value_name(ref), value(v).slot, bytes);
  emit_reorder(ref, source.slot, source.layout, value(v).layout, source.buffer, value(v).buffer);
}

/// A new buffer, the one that a view looks at, or the first input's where nobody needs that any more.
void PlanBuilder::choose_output_buffer(int i, size_t output) {
  const NodeState& s = state(i);
  Value& out = value(s.values[output]);
  out.computed = true;
  if (out.view_of >= 0) {
    out.buffer = value(out.view_of).buffer;
    return;
  }
  if (output == 0 && s.layer->requirements().forward_in_place) {
    const int input = s.summand >= 0 ? addend_of(i) : s.inputs[0];
    const Value& first = value(input);
    const Value& memory = value(root(input));
    if (memory.last_read == i && !memory.read_in_backward && first.layout == out.layout) {
      out.buffer = first.buffer;
      return;
    }
  }
  out.buffer = add_buffer(value_name(out.of), out.slot, value_bytes(out.of, out.slot));
}

/// The other input of a sum that one of its inputs' layers gives.
int PlanBuilder::addend_of(int sum) {
  const std::vector<int>& inputs = state(sum).inputs;
  return node(sum).inputs[0].node == state(sum).summand ? inputs[1] : inputs[0];
}

void PlanBuilder::emit_forward(int i) {
  if (state(i).added_in >= 0) return;
  const int called = state(i).summand >= 0 ? state(i).summand : i;
  const int addend = called != i ? addend_of(i) : -1;
  NodeState& s = state(called);
  for (const int input : s.inputs) compute(input);
  if (addend >= 0) compute(addend);
  for (size_t k = 0; k < state(i).values.size(); ++k) choose_output_buffer(i, k);
  const LayerRequirements& requirements = s.layer->requirements();
  if (requirements.is_view) return;

  LayerCall call;
  call.slot = slot_of(i);
  call.users = layout_.whole().users(called);
  for (const int input : s.inputs) call.inputs.push_back(value(input).buffer);
  for (const int output : state(i).values) call.outputs.push_back(value(output).buffer);
  if (requirements.saved_bytes)
    call.saved = add_buffer("saved by " + node(called).name, call.slot, requirements.saved_bytes);
  if (addend >= 0) call.addend = value(addend).buffer;
  call.parameters = parameter_places(called);
  s.call = static_cast<int>(plan_.calls_.size());
  std::vector<int> reads = call.inputs, writes = call.outputs;
  reads.push_back(call.addend);
  add_parameters(call, reads);
  writes.push_back(call.saved);
  plan_.calls_.push_back(std::move(call));
  emit_call(called, true, std::move(reads), std::move(writes));
}

/// Copies of another slot's parameters are buffers that the call reads.
void PlanBuilder::add_parameters(const LayerCall& call, std::vector<int>& reads) {
  for (const ParameterPlace& place : call.parameters) {
    reads.push_back(place.buffer);
    if (place.weights != place.buffer) reads.push_back(place.weights);
  }
}

void PlanBuilder::emit_call(int i, bool forward, std::vector<int> reads, std::vector<int> writes) {
  NodeState& s = state(i);
  const size_t scratch_bytes = s.layer->requirements().scratch_bytes;
  const int scratch =
      scratch_bytes ? add_buffer("scratch of " + node(i).name, slot_of(i), scratch_bytes) : -1;
  writes.push_back(scratch);
  emit(slot_of(i), node(i).name + (forward ? " forward" : " backward"), std::move(reads), std::move(writes),
       [layer = s.layer, call = s.call, forward, scratch](Frame& frame) {
         const LayerArguments& args = frame.arguments(call, scratch);
         forward ? layer->forward(args) : layer->backward(args);
       });
  const LayerRequirements& requirements = s.layer->requirements();
  plan_.instructions_.back().meeting = forward ? requirements.forward_meeting : requirements.backward_meeting;
}

/// The metrics first: their prediction may share memory with what the loss's gradient overwrites later.
void PlanBuilder::emit_head(size_t h, size_t total) {
  const Head& head = heads_[h];
  const LossPoint& point = loss_points_[h];
  const int slot = slot_of(head.output.node), target = targets_[h], weights = weights_on(slot);
  const int prediction = value_in(point.value, Layout::plain, slot);
  compute(prediction);
  if (!head.metrics.empty()) emit_metrics(h, weights, total + 1);
  const Shape& shape = graph_.spec(point.value).shape;
  const int64_t columns = shape.columns(), positions = shape.positions(), rows = plan_.batch() * positions;
  const bool gradient = training() && state(point.value.node).needs_gradient;
  const std::string name = value_name(head.output);
  const int diff =
      gradient ? add_buffer("gradient of " + value_name(point.value), slot, value_bytes(point.value, slot))
               : -1;
  const View view = plan_.columns_[plan_.input_columns_ + h].view;
  emit(slot, name + " loss", {value(prediction).buffer, target, weights}, {diff},
       [loss = point.loss, ops = &ops(slot), slot, view, rows, columns, positions, total, target, weights,
        rows_per_weight = rows_per_weight(h), diff, buffer = value(prediction).buffer](Frame& frame) {
         const SlotArrays& arrays = frame.arrays(slot);
         const double mean_over =
             static_cast<double>(frame.step().global_batch) * static_cast<double>(positions);
         LossArguments args{.prediction = frame.at(buffer),
                            .target = view,
                            .weights = {static_cast<const float*>(frame.at(weights)), rows_per_weight},
                            .total = arrays.totals + total,
                            .rows = rows,
                            .columns = columns,
                            .diff_prediction = frame.at(diff),
                            .scale = static_cast<float>(loss->weight() / mean_over),
                            .loss_scale = &arrays.state->gradient.loss_scale};
         args.target.data = frame.at(target);
         loss->run(*ops, args);
       });
  if (weights >= 0) emit_sum_of_weights(h, weights, total);
  if (gradient) add_contribution(prediction, diff);
}

/// Rows of a head for each of its weights.
int64_t PlanBuilder::rows_per_weight(size_t h) const {
  const Head& head = heads_[h];
  if (!head.weights) return 1;
  return graph_.spec(head.output).shape.positions() / head.weights->shape.elements();
}

/// Into the last of the head's totals.
void PlanBuilder::emit_sum_of_weights(size_t h, int weights, size_t first_total) {
  const Head& head = heads_[h];
  const int slot = slot_of(head.output.node);
  const int64_t n = plan_.batch() * head.weights->shape.elements();
  const size_t total = first_total + static_cast<size_t>(head.count_totals()) - 1;
  emit(slot, value_name(head.output) + " weights", {weights}, {},
       [ops = &ops(slot), slot, weights, n, total](Frame& frame) {
         ops->add_sum(static_cast<const float*>(frame.at(weights)), frame.arrays(slot).totals + total, n);
       });
}

void PlanBuilder::emit_metrics(size_t h, int weights, size_t first) {
  const Head& head = heads_[h];
  const int slot = slot_of(head.output.node), target = targets_[h];
  const int output = value_in(head.output, Layout::plain, slot);
  compute(output);
  const Shape& shape = graph_.spec(head.output).shape;
  const int64_t columns = shape.columns(), rows = plan_.batch() * shape.positions();
  const View view = plan_.columns_[plan_.input_columns_ + h].view;
  emit(slot, value_name(head.output) + " metrics", {value(output).buffer, target, weights}, {},
       [metrics = head.metrics, ops = &ops(slot), slot, view, rows, columns, first, target, weights,
        rows_per_weight = rows_per_weight(h), buffer = value(output).buffer](Frame& frame) {
         MetricArguments args{.prediction = frame.at(buffer),
                              .target = view,
                              .sums = frame.arrays(slot).totals + first,
                              .rows = rows,
                              .columns = columns};
         args.target.data = frame.at(target);
         for (const HeadMetric& metric : metrics) {
           args.weights = {};
           if (metric.weighted)
             args.weights = {static_cast<const float*>(frame.at(weights)), rows_per_weight};
           metric.metric->run(*ops, args);
           args.sums += metric.sums;
         }
       });
}

void PlanBuilder::emit_outputs() {
  for (const ValueRef output : graph_.outputs) {
    const int v = value_in(output, Layout::plain, slot_of(output.node));
    compute(v);
    touch(value(v).buffer, 0);
    keep_to_the_end(value(v).buffer);
    plan_.outputs_.push_back({value(v).buffer, {nullptr, batch_shape(output), graph_.spec(output).dtype}});
  }
}

}  // namespace dtrain
