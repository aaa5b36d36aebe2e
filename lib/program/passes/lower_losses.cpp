#include "program/passes/passes.h"

namespace dtrain {

namespace {

/// Emits the instructions of one head. Its totals start at index `total`: first the total of the loss, then
/// the totals of the metrics, then the totals of the row weights (Head::count_totals).
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

  /// Emits the metrics before the loss, because the loss's gradient may overwrite the memory of the
  /// prediction.
  void lower() {
    step_.program.heads.push_back({point_.loss, head_.metrics});
    if (head_.mask) lower_mask();
    if (!head_.metrics.empty()) lower_metrics();
    lower_loss();
    const size_t end = total_ + static_cast<size_t>(head_.count_totals());
    if (head_.weights && head_.mask) sum_weights(" positions", unweighted_, end - 2);
    if (head_.is_weighted()) sum_weights(" weights", weights_, end - 1);
  }

 private:
  int64_t rows(const Shape& shape) const { return step_.batch() * shape.positions(); }
  /// Returns the number of rows of the head for each weight.
  int64_t rows_per_weight() const {
    if (!head_.is_weighted()) return 1;
    return step_.graph.spec(head_.output).shape.positions() / head_.weights_per_sample();
  }
  int64_t weight_elements() const { return step_.batch() * head_.weights_per_sample(); }

  void emit(const char* what, Work work) {
    step_.program.instructions.push_back({slot_, Phase::loss, static_cast<NodeId>(head_.output.node),
                                          step_.name_of(head_.output) + what, std::move(work)});
  }

  /// Computes two arrays of row weights from the output's mask. One array includes the weights of samples,
  /// and the other array does not.
  void lower_mask() {
    unweighted_ = masked(ValueId::none, " mask");
    weights_ = head_.weights ? masked(weights_, " masked weights") : unweighted_;
  }

  ValueId masked(ValueId weights, const char* what) {
    const ValueId to = step_.add_array(ProgramValue::Kind::activation, step_.name_of(head_.output) + what,
                                       slot_, static_cast<size_t>(weight_elements()) * sizeof(float));
    const int64_t each = head_.weights_per_sample();
    emit(what, MaskWeights{.weights = weights,
                           .mask = step_.value_of(head_.mask->value),
                           .to = to,
                           .elements = weight_elements(),
                           .per_weight = head_.weights ? each / head_.weights->shape.elements() : 1,
                           .per_mask = each / head_.mask->shape.elements()});
    return to;
  }

  void lower_metrics() {
    const Shape& shape = step_.graph.spec(head_.output).shape;
    emit(" metrics", ComputeMetrics{.head = h_,
                                    .prediction = step_.value_of(head_.output),
                                    .target = target_,
                                    .weights = weights_,
                                    .unweighted = unweighted_,
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

  void sum_weights(const char* what, ValueId weights, size_t total) {
    emit(what, SumWeights{.weights = weights, .elements = weight_elements(), .total = total});
  }

  CompileState& step_;
  const size_t h_, total_;
  const Head& head_;
  const LossPoint& point_;
  const int slot_;
  const ValueId target_;
  ValueId weights_ = ValueId::none;  // weights of the rows, for the loss and for weighted metrics
  /// Row weights from the mask alone, without the weights of samples. Used for metrics that are not weighted.
  ValueId unweighted_ = ValueId::none;
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
