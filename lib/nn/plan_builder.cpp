// The forward half: what is fused, which layout every value has, who reads it, and the instructions that
// compute it.
#include "nn/plan_builder.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

PlanBuilder::PlanBuilder(Plan& plan, const Graph& graph, const ParameterLayout& layout,
                         std::span<const Head> heads, Ops& ops, Plan::Purpose purpose)
    : plan_(plan),
      graph_(graph),
      layout_(layout),
      heads_(heads),
      ops_(ops),
      purpose_(purpose),
      states_(graph.nodes.size()) {}

void PlanBuilder::build() {
  choose_loss_points();
  fuse_activations();
  find_gradient_needs();
  for (int i = 0; i < end(); ++i) prepare(i);
  if (wants_losses()) {
    for (size_t h = 0; h < heads_.size(); ++h) {
      read(value_in(loss_points_[h].node, Layout::plain), end(), false);
      if (!heads_[h].metrics.empty()) read(value_in(heads_[h].output.node, Layout::plain), end(), false);
    }
  } else {
    for (const ValueRef& output : graph_.outputs) read(value_in(output.node, Layout::plain), end(), false);
  }
  settle_views();

  place_columns();
  for (int i = 0; i < end(); ++i)
    if (state(i).layer) emit_forward(i);
  if (wants_losses()) {
    emit_losses();
  } else {
    emit_outputs();
  }
  if (!training()) return;
  for (int i = end() - 1; i >= 0; --i) {
    if (!state(i).layer || !state(i).needs_gradient) continue;
    emit_backward(i);
    note_ready(i);
  }
}

/// The layout has the parameters in the order in which this is called.
void PlanBuilder::note_ready(int i) {
  int64_t end = plan_.ready_.empty() ? 0 : plan_.ready_.back().second;
  const int64_t before = end;
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    const ParameterSlice& slice = layout_.slice(i, static_cast<int>(k));
    if (slice.offset < layout_.trained()) end = std::max(end, slice.offset + slice.elements());
  }
  if (end > before) plan_.ready_.emplace_back(plan_.instructions_.size(), end);
}

void PlanBuilder::choose_loss_points() {
  if (!wants_losses()) return;
  for (const Head& head : heads_) {
    loss_points_.push_back({head.output.node, head.loss});
    const GraphNode& n = node(head.output.node);
    if (!n.layer || !(n.layer->is_softmax() || n.layer->elementwise())) continue;
    if (auto loss = head.loss->before(*n.layer)) loss_points_.back() = {n.inputs[0].node, std::move(loss)};
  }
}

/// An elementwise activation joins the layer before it where that layer can do it, nobody else reads that
/// layer's value, and no loss does.
void PlanBuilder::fuse_activations() {
  std::vector<int> readers(graph_.nodes.size(), 0);
  for (const GraphNode& n : graph_.nodes)
    for (const ValueRef& input : n.inputs) ++readers[static_cast<size_t>(input.node)];
  for (const ValueRef& output : graph_.outputs) ++readers[static_cast<size_t>(output.node)];
  for (const LossPoint& point : loss_points_) ++readers[static_cast<size_t>(point.node)];
  for (int i = 0; i < end(); ++i) {
    const GraphNode& n = node(i);
    if (!n.layer) continue;
    const auto activation = n.layer->elementwise();
    if (!activation || !from_output(*activation)) continue;
    const int before = n.inputs[0].node;
    if (!node(before).layer || readers[static_cast<size_t>(before)] != 1 || state(before).fused_into >= 0)
      continue;
    if (state(before).activation.kind != Activation::linear || !node(before).layer->can_fuse(*activation))
      continue;
    state(i).fused_into = before;
    state(before).activation = *activation;
  }
}

void PlanBuilder::find_gradient_needs() {
  if (!training()) return;
  for (int i = 0; i < end(); ++i) {
    const GraphNode& n = node(i);
    state(i).needs_gradient = n.trainable && !n.parameters.empty();
    for (const ValueRef& input : n.inputs)
      if (state(input.node).needs_gradient) state(i).needs_gradient = true;
  }
}

/// Prepares a node's layer and notes what it reads. The values that it reads exist: nodes come after their
/// inputs.
void PlanBuilder::prepare(int i) {
  const GraphNode& n = node(i);
  NodeState& s = state(i);
  if (s.fused_into >= 0) {
    s.value = state(s.fused_into).value;
    return;
  }
  if (!n.layer) {
    s.value = value_in(i, Layout::plain);
    return;
  }
  std::vector<TensorSpec> inputs;
  std::vector<Layout> layouts;
  std::vector<bool> needs_gradient;
  for (const ValueRef& input : n.inputs) {
    inputs.push_back(graph_.spec(input));
    layouts.push_back(value(state(input.node).value).layout);
    needs_gradient.push_back(state(input.node).needs_gradient);
  }
  try {
    plan_.layers_.push_back(n.layer->prepare({ops_, plan_.batch_, training(), inputs, n.outputs, layouts,
                                              s.activation, needs_gradient, stream_of(n.name), n.trainable}));
  } catch (const Unsupported& refusal) {
    throw error_at(n.mark, fmt::format("{} '{}': {} (an output of {}, batches of {})", n.kind, n.name,
                                       refusal.what(), n.outputs[0].shape.str(), plan_.batch_));
  }
  s.layer = plan_.layers_.back().get();
  const LayerRequirements& requirements = s.layer->requirements();
  const bool backward = s.needs_gradient && !requirements.is_view && !requirements.passes_gradient;
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    s.inputs.push_back(value_in(n.inputs[k].node, requirements.input_layout(k)));
    read(s.inputs.back(), i, backward && requirements.backward_reads_inputs);
  }
  s.value = static_cast<int>(values_.size());
  values_.push_back({.node = i,
                     .layout = requirements.output_layout(),
                     .view_of = requirements.is_view ? s.inputs[0] : -1});
  value_of_[{i, requirements.output_layout()}] = s.value;
  const bool undone_here = s.activation.kind != Activation::linear && !requirements.undoes_activation;
  if (s.needs_gradient && ((backward && requirements.backward_reads_outputs) || undone_here))
    read(s.value, i, true);
}

int PlanBuilder::value_in(int i, Layout layout) {
  if (state(i).fused_into >= 0) i = state(i).fused_into;
  const auto [found, is_new] = value_of_.try_emplace({i, layout}, static_cast<int>(values_.size()));
  if (is_new) {
    if (state(i).value >= 0)
      read(state(i).value, i + 1, false);  // by the reorder, which runs before any reader
    values_.push_back({.node = i, .layout = layout});
  }
  return found->second;
}

void PlanBuilder::read(int v, int reader, bool in_backward) {
  value(v).last_read = std::max(value(v).last_read, reader);
  // A value in another layout is made from the node's own at its first reader.
  const int own = state(value(v).node).value;
  if (own >= 0 && own != v && value(v).view_of < 0)
    value(own).last_read = std::max(value(own).last_read, reader);
  if (in_backward) value(v).read_in_backward = true;
}

int PlanBuilder::root(int v) const {
  while (values_[static_cast<size_t>(v)].view_of >= 0) v = values_[static_cast<size_t>(v)].view_of;
  return v;
}

/// Reads of a view are reads of the memory that it looks at.
void PlanBuilder::settle_views() {
  for (int v = static_cast<int>(values_.size()) - 1; v >= 0; --v)
    if (value(v).view_of >= 0) read(value(v).view_of, value(v).last_read, value(v).read_in_backward);
}

void PlanBuilder::emit(std::vector<int> buffers,
                       std::function<void(std::span<void* const>, const StepInfo&)> run) {
  for (const int buffer : buffers)
    if (buffer >= 0) plan_.arena_.touch(buffer, now());
  auto pointers = std::make_shared<std::vector<void*>>(buffers.size());
  plan_.binders_.push_back([plan = &plan_, pointers, buffers = std::move(buffers)] {
    for (size_t i = 0; i < buffers.size(); ++i) (*pointers)[i] = plan->at(buffers[i]);
  });
  plan_.instructions_.push_back([pointers, run = std::move(run)](const StepInfo& info) {
    run(std::span<void* const>(*pointers), info);
  });
}

/// The batch is written before the first instruction, so these live from then on.
void PlanBuilder::place_columns() {
  const auto place = [&](const Shape& shape, DType dtype, size_t bytes) {
    const View view{nullptr, shape.prepended(plan_.batch_), dtype};
    const int buffer = plan_.arena_.add(bytes);
    plan_.arena_.touch(buffer, 0);
    const size_t column = plan_.columns_.size();
    plan_.columns_.push_back(view);
    plan_.binders_.push_back(
        [plan = &plan_, column, buffer] { plan->columns_[column].data = plan->at(buffer); });
    return buffer;
  };
  for (const int input : graph_.inputs) {
    Value& v = value(state(input).value);
    v.buffer = place(graph_.spec({input}).shape, graph_.spec({input}).dtype, value_bytes(input));
    v.computed = true;
  }
  plan_.input_columns_ = plan_.columns_.size();
  if (!wants_losses()) return;
  for (const Head& head : heads_) {
    const auto elements = static_cast<size_t>(plan_.batch_ * head.target.shape.elements());
    target_buffers_.push_back(
        place(head.target.shape, head.target.dtype, elements * bytes_of(head.target.dtype)));
  }
}

void PlanBuilder::emit_reorder(int i, Layout from, Layout to, int src, int dst) {
  plan_.reorders_.push_back(ops_.reorder(batch_shape(i), from, to));
  emit({src, dst}, [reorder = plan_.reorders_.back().get()](std::span<void* const> p, const StepInfo&) {
    reorder->run(p[0], p[1]);
  });
}

void PlanBuilder::compute(int v) {
  if (value(v).computed) return;
  value(v).computed = true;
  const Value& source = value(state(value(v).node).value);
  value(v).buffer = plan_.arena_.add(value_bytes(value(v).node));
  emit_reorder(value(v).node, source.layout, value(v).layout, source.buffer, value(v).buffer);
}

/// A new buffer, the one that a view looks at, or the first input's where nobody needs that any more.
void PlanBuilder::choose_output_buffer(int i) {
  const NodeState& s = state(i);
  Value& out = value(s.value);
  out.computed = true;
  if (out.view_of >= 0) {
    out.buffer = value(out.view_of).buffer;
    return;
  }
  if (s.layer->requirements().forward_in_place) {
    const Value& first = value(s.inputs[0]);
    const Value& memory = value(root(s.inputs[0]));
    if (memory.last_read == i && !memory.read_in_backward && first.layout == out.layout) {
      out.buffer = first.buffer;
      return;
    }
  }
  out.buffer = plan_.arena_.add(value_bytes(i));
}

void PlanBuilder::emit_forward(int i) {
  NodeState& s = state(i);
  for (const int input : s.inputs) compute(input);
  choose_output_buffer(i);
  const LayerRequirements& requirements = s.layer->requirements();
  if (requirements.is_view) return;

  plan_.steps_.push_back(std::make_unique<Plan::Step>());
  s.step = plan_.steps_.back().get();
  s.step->layer = s.layer;
  if (requirements.saved_bytes) s.saved = plan_.arena_.add(requirements.saved_bytes);
  std::vector<int> inputs, parameters;
  for (const int input : s.inputs) inputs.push_back(value(input).buffer);
  plan_.binders_.push_back([plan = &plan_, args = &s.step->args, inputs, out = value(s.value).buffer,
                            saved = s.saved, layout = &layout_, i, count = node(i).parameters.size(),
                            element_bytes = bytes_of(ops_.compute_type())] {
    args->inputs.clear();
    args->parameters.clear();
    args->weights.clear();
    for (const int input : inputs) args->inputs.push_back(plan->at(input));
    for (size_t k = 0; k < count; ++k) {
      const int64_t offset = layout->slice(i, static_cast<int>(k)).offset;
      args->parameters.push_back(plan->arrays_.values + offset);
      args->weights.push_back(plan->arrays_.weights + static_cast<size_t>(offset) * element_bytes);
    }
    args->outputs = {plan->at(out)};
    args->saved = plan->at(saved);
  });
  std::vector<int> buffers = inputs;
  buffers.push_back(value(s.value).buffer);
  emit_call(i, true, buffers);
}

void PlanBuilder::emit_call(int i, bool forward, std::span<const int> buffers) {
  NodeState& s = state(i);
  const size_t scratch_bytes = s.layer->requirements().scratch_bytes;
  const int scratch = scratch_bytes ? plan_.arena_.add(scratch_bytes) : -1;
  for (const int buffer : buffers)
    if (buffer >= 0) plan_.arena_.touch(buffer, now());
  for (const int buffer : {scratch, s.saved})
    if (buffer >= 0) plan_.arena_.touch(buffer, now());
  plan_.instructions_.push_back([plan = &plan_, step = s.step, forward, scratch](const StepInfo& info) {
    LayerArguments& args = step->args;
    args.scratch = plan->at(scratch);
    args.seed = info.seed;
    args.step = &plan->arrays_.state->now.step;
    args.first_sample = info.first_sample;
    args.share = plan->share(info);
    forward ? step->layer->forward(args) : step->layer->backward(args);
  });
}

void PlanBuilder::emit_losses() {
  size_t total = 0;
  for (size_t h = 0; h < heads_.size(); ++h) {
    const Head& head = heads_[h];
    const LossPoint& point = loss_points_[h];
    const int prediction = value_in(point.node, Layout::plain);
    compute(prediction);
    const View target{nullptr, head.target.shape.prepended(plan_.batch_), head.target.dtype};
    const Shape& shape = node(point.node).outputs[0].shape;
    const int64_t columns = shape.rank() ? shape.back() : 1;
    const int64_t positions = shape.elements() / columns, rows = plan_.batch_ * positions;
    const bool gradient = training() && state(point.node).needs_gradient;
    const int diff = gradient ? plan_.arena_.add(value_bytes(point.node)) : -1;

    // The metrics first: their prediction may share memory with what the gradient overwrites later.
    if (!head.metrics.empty()) {
      const int output = value_in(head.output.node, Layout::plain);
      compute(output);
      emit({value(output).buffer, target_buffers_[h]},
           [plan = &plan_, metrics = head.metrics, ops = &ops_, target, rows, columns, first = total + 1](
               std::span<void* const> p, const StepInfo&) {
             View there = target;
             there.data = p[1];
             for (size_t m = 0; m < metrics.size(); ++m)
               metrics[m]->run(*ops, p[0], there, plan->arrays_.totals + first + m, rows, columns);
           });
    }
    emit({value(prediction).buffer, target_buffers_[h], diff},
         [plan = &plan_, loss = point.loss, ops = &ops_, target, rows, columns, positions, total](
             std::span<void* const> p, const StepInfo& info) {
           View there = target;
           there.data = p[1];
           const auto scale = static_cast<float>(
               1.0 / (static_cast<double>(info.global_batch) * static_cast<double>(positions)));
           loss->run(*ops, p[0], there, scale, &plan->arrays_.state->gradient.loss_scale, p[2],
                     plan->arrays_.totals + total, rows, columns);
         });
    if (gradient) add_contribution(prediction, diff);
    total += 1 + head.metrics.size();
  }
}

void PlanBuilder::emit_outputs() {
  for (const ValueRef& output : graph_.outputs) {
    const int v = value_in(output.node, Layout::plain);
    compute(v);
    plan_.arena_.keep(value(v).buffer);
    const size_t index = plan_.outputs_.size();
    plan_.outputs_.push_back({nullptr, batch_shape(output.node), graph_.spec(output).dtype});
    plan_.binders_.push_back(
        [plan = &plan_, index, buffer = value(v).buffer] { plan->outputs_[index].data = plan->at(buffer); });
  }
}

}  // namespace dtrain
