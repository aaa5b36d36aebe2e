#include "engine/update/worker_update.h"

#include <vector>

#include "collective/sum_tree.h"

namespace dtrain {

float* WorkerUpdate::gradient_at(int64_t begin) const {
  const Range share = parts_.reducer.share_of(parts_.computing.rank());
  return parts_.reducer.sum_of(parts_.computing) + (begin - share.begin);
}

void WorkerUpdate::run(const AllReduceGradients& work) {
  parts_.reducer.all_reduce(parts_.computing, work.range);
}

void WorkerUpdate::run(const AllReduceRowWeights&) {
  parts_.reducer.all_reduce_row_weights(parts_.computing);
}

void WorkerUpdate::run(const JoinReductions& work) {
  parts_.reducer.join(parts_.computing, parts_.replicas);
  if (work.with_other_slots) parts_.everyone.barrier();
}

void WorkerUpdate::run(const ReduceScatterGradients&) {
  parts_.reducer.reduce_scatter(parts_.computing, parts_.replicas);
}

const double* WorkerUpdate::sum_of(RowWeightSum weights) const {
  switch (weights) {
    case RowWeightSum::none:
      return nullptr;
    case RowWeightSum::own:
      return parts_.updating.row_weights();
    case RowWeightSum::summed:
      return parts_.updating.weights();
  }
  return nullptr;
}

void WorkerUpdate::run(const AddPenaltyGradients& work) {
  Worker& worker = parts_.updating;
  parts_.update.weight_rules().add_penalty_gradients(
      worker.ops(), parts_.update.gradient_rule(), sum_of(work.weights), worker.state(),
      parts_.store.updated_by(worker), gradient_at(work.range.begin), work.range);
}

void WorkerUpdate::run(const SumSquares& work) {
  Worker& worker = parts_.updating;
  worker.ops().sum_of_squares(gradient_at(work.range.begin), worker.squares(), work.range.size());
}

void WorkerUpdate::run(const AllReduceSquares& work) {
  Worker& worker = parts_.updating;
  const double squares =
      parts_.norm->sum_of_squares(worker, parts_.everyone, gradient_at(work.range.begin), work.range);
  worker.context().copy_to_device(worker.squares(), &squares, sizeof(squares));
}

/// Adds the sums in the same order as ProcessTotals: first over the slots of each replica, then over the
/// replicas.
void WorkerUpdate::run(const AllReduceRowWeightsOnHost&) {
  double weights = 0;
  parts_.computing.context().copy_to_host(&weights, parts_.computing.row_weights(), sizeof(weights));
  std::vector<double> all(static_cast<size_t>(parts_.everyone.size()));
  parts_.everyone.all_gather({&weights, 1}, all);
  std::vector<double> by_replica(all.size() / static_cast<size_t>(parts_.slots));
  std::vector<const double*> replicas;
  for (size_t i = 0; i < all.size(); ++i) by_replica[i / static_cast<size_t>(parts_.slots)] += all[i];
  for (const double& sum : by_replica) replicas.push_back(&sum);
  SumTree(static_cast<int>(replicas.size())).add<double>(replicas, &weights, {0, 1});
  parts_.updating.context().copy_to_device(parts_.updating.weights(), &weights, sizeof(weights));
}

void WorkerUpdate::run(const ScaleGradient& work) {
  Worker& worker = parts_.updating;
  worker.ops().update_gradient_scale(parts_.update.gradient_rule(),
                                     parts_.update.needs_norm() ? worker.squares() : nullptr,
                                     sum_of(work.weights), worker.state());
  if (&parts_.computing != &worker)
    parts_.computing.context().copy_to_device(parts_.computing.state(), worker.state(), sizeof(StepState));
}

void WorkerUpdate::run(const FindDirections& work) {
  Worker& worker = parts_.updating;
  parts_.update.find_directions(worker.ops(), worker.state(), parts_.store.updated_by(worker),
                                gradient_at(work.range.begin), work.range, parts_.update.terms(work.range),
                                worker.parameter_squares());
}

void WorkerUpdate::run(const AllReduceDirections& work) {
  Worker& worker = parts_.updating;
  double* const squares = worker.parameter_squares();
  const std::vector<PairwiseTerm> terms = parts_.update.terms(work.range);
  std::vector<double> sums(terms.size());
  worker.context().copy_to_host(sums.data(), squares, sums.size() * sizeof(double));
  sums =
      sum_over_members(parts_.sharers, terms, sums, worker.most_parameter_squares(), parts_.update.squares());
  worker.context().copy_to_device(squares, sums.data(), sums.size() * sizeof(double));
}

void WorkerUpdate::run(const UpdateParameters& work) {
  Worker& worker = parts_.updating;
  float* const gradient = gradient_at(work.range.begin);
  parts_.update.apply(worker.ops(), worker.state(), parts_.store.updated_by(worker), gradient, work.range,
                      worker.parameter_squares());
  if (parts_.records_gradient) parts_.last.set(worker.rank(), worker, gradient, work.range);
}

void WorkerUpdate::run(const SynchronizeReplicas&) {
  parts_.replicas.barrier();
}

void WorkerUpdate::run(const ConstrainParameters& work) {
  Worker& worker = parts_.updating;
  parts_.update.weight_rules().constrain(worker.ops(), worker.state(), parts_.store.updated_by(worker),
                                         work.range);
}

void WorkerUpdate::run(const SynchronizeDevice&) {
  parts_.updating.context().synchronize();
}

void WorkerUpdate::run(const GatherUpdated&) {
  parts_.reducer.gather_updated(parts_.computing, parts_.replicas);
}

}  // namespace dtrain
