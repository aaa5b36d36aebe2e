#include "program/passes/passes.h"

namespace dtrain {

namespace {

/// Lowers one head. Its totals start at index `total`: the loss's, then the metrics', then that of the row
/// weights.
class LossLowering {
 public:
  LossLowering(CompileState& step, size_t h, size_t total)
      : step_(step),
        h_(h),
        total_(total),
        head_(step.heads[h]),
        point_(step.loss_points[h]),
        slot_(step.slot_of(head_.output.node)),
        target_(step.program.columns[step.program.input_columns + h].value) {
    if (head_.weights) weights_ = step.program.columns.back().value;
  }

  /// Metrics come first, because the loss's gradient may later overwrite memory that the prediction shares.
  void lower() {
    step_.program.heads.push_back({point_.loss, head_.metrics});
    if (!head_.metrics.empty()) lower_metrics();
    lower_loss();
    if (head_.weights) lower_weights();
  }

 private:
  int64_t rows(const Shape& shape) const { return step_.batch() * shape.positions(); }
  /// Returns the number of the head's rows per weight.
  int64_t rows_per_weight() const {
    if (!head_.weights) return 1;
    return step_.graph.spec(head_.output).shape.positions() / head_.weights->shape.elements();
  }

  void emit(const char* what, Work work) {
    step_.program.instructions.push_back({slot_, Phase::loss, static_cast<NodeId>(head_.output.node),
                                          step_.name_of(head_.output) + what, std::move(work)});
  }

  void lower_metrics() {
    const Shape& shape = step_.graph.spec(head_.output).shape;
    emit(" metrics", ComputeMetrics{.head = h_,
                                    .prediction = step_.value_of(head_.output),
                                    .target = target_,
                                    .weights = weights_,
                                    .rows = rows(shape),
                                    .columns = shape.columns(),
                                    .rows_per_weight = rows_per_weight(),
                                    .total = total_ + 1});
  }

  void lower_loss() {
    const Shape& shape = step_.graph.spec(point_.value).shape;
    const ValueRef of = step_.computed(point_.value);
    NodeState& s = step_.state(of.node);
    ValueId diff = ValueId::none;
    if (step_.training() && s.needs_gradient) {
      diff = step_.add_value(ProgramValue::Kind::gradient, of, slot_, Layout::plain);
      s.gradients[static_cast<size_t>(of.output)].push_back(diff);
    }
    emit(" loss", ComputeLoss{.head = h_,
                              .prediction = step_.value_of(point_.value),
                              .target = target_,
                              .weights = weights_,
                              .diff_prediction = diff,
                              .rows = rows(shape),
                              .columns = shape.columns(),
                              .positions = shape.positions(),
                              .rows_per_weight = rows_per_weight(),
                              .total = total_});
  }

  /// Adds the row weights to the last of the head's totals.
  void lower_weights() {
    emit(" weights", SumWeights{.weights = weights_,
                                .elements = step_.batch() * head_.weights->shape.elements(),
                                .total = total_ + static_cast<size_t>(head_.count_totals()) - 1});
  }

  CompileState& step_;
  const size_t h_, total_;
  const Head& head_;
  const LossPoint& point_;
  const int slot_;
  const ValueId target_;
  ValueId weights_ = ValueId::none;
};

}  // namespace

void lower_losses(CompileState& step) {
  if (!step.wants_losses()) return;
  size_t total = 0;
  for (size_t h = 0; h < step.heads.size(); ++h) {
    LossLowering(step, h, total).lower();
    total += static_cast<size_t>(step.heads[h].count_totals());
  }
}

}  // namespace dtrain
