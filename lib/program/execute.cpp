#include "program/execute.h"

#include <stdexcept>
#include <type_traits>
#include <variant>

namespace dtrain {

namespace {

/// Runs the work of one instruction.
class Execution {
 public:
  Execution(const Instruction& instruction, Frame& frame)
      : frame_(frame),
        plan_(frame.plan()),
        slot_(instruction.slot),
        arrays_(frame.arrays(slot_)),
        ops_(plan_.ops(slot_)) {}

  void operator()(const LayerForward& work) const {
    plan_.layer(call_of(work.call).node).forward(frame_.arguments(work.call));
  }
  void operator()(const LayerBackward& work) const {
    plan_.layer(call_of(work.call).node).backward(frame_.arguments(work.call));
  }
  void operator()(const PassOn&) const {}

  void operator()(const ComputeLoss& work) const {
    const Loss& loss = *head(work.head).loss;
    const double mean_over =
        static_cast<double>(frame_.step().global_batch) * static_cast<double>(work.positions);
    loss.run(ops_, {.prediction = frame_.at(work.prediction),
                    .target = target(work.head),
                    .weights = {frame_.floats(work.weights), work.rows_per_weight},
                    .total = arrays_.totals + work.total,
                    .rows = work.rows,
                    .columns = work.columns,
                    .positions = work.positions,
                    .diff_prediction = frame_.at(work.diff_prediction),
                    .scale = static_cast<float>(loss.weight() / mean_over),
                    .loss_scale = arrays_.loss_scales ? arrays_.loss_scales + work.head
                                                      : &arrays_.state->gradient.loss_scale});
  }

  void operator()(const ComputeMetrics& work) const {
    MetricArguments args{.prediction = frame_.at(work.prediction),
                         .target = target(work.head),
                         .sums = arrays_.totals + work.total,
                         .rows = work.rows,
                         .columns = work.columns};
    for (const HeadMetric& metric : head(work.head).metrics) {
      args.weights = {frame_.floats(metric.weighted ? work.weights : work.unweighted), work.rows_per_weight};
      metric.metric->run(ops_, args);
      args.sums += metric.sums;
    }
  }

  void operator()(const AddActivityPenalty& work) const {
    ops_.add_activity_penalty(mean(work.penalty), frame_.at(work.value), arrays_.totals + work.total,
                              work.elements);
  }
  void operator()(const ComputeActivityGradient& work) const {
    ops_.activity_gradient(mean(work.penalty), &arrays_.state->gradient.loss_scale, frame_.at(work.value),
                           frame_.at(work.to), work.elements);
  }

  void operator()(const MaskWeights& work) const {
    ops_.mask_weights({.weights = frame_.floats(work.weights),
                       .per_weight = work.per_weight,
                       .mask = static_cast<const uint8_t*>(frame_.at(work.mask)),
                       .per_mask = work.per_mask,
                       .dst = static_cast<float*>(frame_.at(work.to)),
                       .n = work.elements});
  }

  void operator()(const SumWeights& work) const {
    ops_.add_sum(frame_.floats(work.weights), arrays_.totals + work.total, work.elements);
  }

  void operator()(const ReorderValue& work) const {
    plan_.reorder(work.reorder).run(frame_.at(work.from), frame_.at(work.to));
  }
  void operator()(const CastParameters& work) const {
    ops_.cast(frame_.at(work.to), ops_.compute_type(), frame_.at(work.from), DType::float32, work.elements);
  }

  void operator()(const SendValue& work) const {
    const ProgramLink& link = plan_.program().links[work.link];
    const uint64_t sent = plan_.link(work.link).send(frame_.at(work.value), link.bytes);
    if (link.keeping == Link::Keeping::lent) frame_.note_sent(work.link, sent);
  }
  void operator()(const SendParameter& work) const {
    const ProgramLink& link = plan_.program().links[work.link];
    frame_.note_sent(work.link, plan_.link(work.link).send(arrays_.values + work.offset, link.bytes));
  }
  void operator()(const ReceiveValue& work) const {
    plan_.link(work.link).receive(frame_.at(work.value), plan_.program().values[work.value].bytes);
  }

  void operator()(const GatherParameters& work) const {
    arrays_.shards->gather(work.range, static_cast<float*>(frame_.at(work.to)));
  }
  void operator()(const JoinGathered&) const { arrays_.shards->join(); }

  void operator()(const SumGradients& work) const {
    const void* activated = frame_.at(work.activated);
    const auto sources = frame_.at_all(work.sources);
    void* sum = frame_.at(work.sum);
    float* diff_bias = frame_.gradient(slot_, work.bias);
    if (!diff_bias) return ops_.sum_backward(work.activation, activated, sources, sum, work.elements);
    ops_.sum_backward_bias(work.activation, activated, sources, sum, diff_bias, work.elements / work.columns,
                           work.columns);
  }
  void operator()(const SumBiasGradient& work) const {
    ops_.column_sum(frame_.gradient(slot_, work.bias), frame_.at(work.gradient), work.rows, work.columns);
  }
  void operator()(const AccumulateGradient& work) const {
    if (!arrays_.accumulates) return;
    ops_.scale_add(arrays_.gradients + work.offset, frame_.floats(work.from), 1.0f, 1.0f, work.elements);
  }
  void operator()(const AddSharedGradient& work) const {
    const float kept = work.is_first && !arrays_.accumulates ? 0.0f : 1.0f;
    ops_.scale_add(frame_.gradient(slot_, work.to), frame_.floats(work.from), 1.0f, kept, work.elements);
  }
  void operator()(const ZeroGradient& work) const {
    float* gradient = frame_.gradient(slot_, work.to);
    const bool accumulates = arrays_.accumulates;
    if (work.is_statistic)
      ops_.scale_add(gradient, frame_.parameter(slot_, work.statistic), frame_.share(),
                     accumulates ? 1.0f : 0.0f, work.elements);
    else if (!accumulates)
      ops_.fill(gradient, 0.0f, work.elements);
  }

  void operator()(const ZeroBucket& work) const {
    ops_.context().enqueue_zero(frame_.at(work.bucket), plan_.program().values[work.bucket].bytes);
  }
  void operator()(const ReduceBucket& work) const {
    arrays_.shards->reduce(work.range, frame_.floats(work.bucket));
  }
  void operator()(const GradientsReady&) const {}
  /// Does nothing if the frame has no SlotArrays::update. The gradients of such a frame are reduced later or
  /// not at all.
  void operator()(const UpdateWork auto& work) const {
    if (arrays_.update) arrays_.update->run(work);
  }

 private:
  const LayerCall& call_of(CallId call) const { return plan_.program().calls[call]; }
  /// Returns the penalty divided by the number of samples of the global batch.
  PenaltySpec mean(const PenaltySpec& penalty) const {
    const auto samples = static_cast<float>(frame_.step().global_batch);
    return {.l1 = penalty.l1 / samples, .l2 = penalty.l2 / samples};
  }
  const ProgramHead& head(size_t number) const { return plan_.program().heads[number]; }
  const View& target(size_t number) const { return frame_.columns()[plan_.program().input_columns + number]; }

  Frame& frame_;
  const Plan& plan_;
  const int slot_;
  const SlotArrays& arrays_;
  Ops& ops_;
};

}  // namespace

void execute(const Instruction& instruction, Frame& frame) {
  std::visit(Execution(instruction, frame), instruction.work);
}

void execute(const Instruction& instruction, ParameterUpdate& update) {
  std::visit(
      [&](const auto& work) {
        if constexpr (UpdateWork<std::remove_cvref_t<decltype(work)>>)
          update.run(work);
        else
          throw std::logic_error("'" + instruction.name + "' is not part of an update");
      },
      instruction.work);
}

namespace {

void execute_unless_others_fail(const Instruction& instruction, Frame& frame) {
  if (const World* world = frame.arrays(instruction.slot).world) world->check_others();
  execute(instruction, frame);
}

}  // namespace

void run_all(Frame& frame, const StepInfo& info) {
  frame.set_step(info);
  for (const Instruction& instruction : frame.plan().program().instructions)
    execute_unless_others_fail(instruction, frame);
  for (int slot = 0; slot < frame.plan().slots(); ++slot) wait_received(frame, slot);
}

void run_part(Frame& frame, int slot, Plan::Part part) {
  for (const Instruction& instruction : frame.plan().program().instructions)
    if (Plan::belongs(instruction, slot, part)) execute_unless_others_fail(instruction, frame);
}

void wait_received(const Frame& frame, int slot) {
  const Plan& plan = frame.plan();
  for (size_t i = 0; i < plan.program().links.size(); ++i)
    if (const auto id = static_cast<LinkId>(i); plan.program().links[id].from == slot)
      plan.link(id).wait_received(frame.sent(id));
}

}  // namespace dtrain
