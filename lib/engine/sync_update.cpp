#include "engine/sync_update.h"

#include <vector>

namespace dtrain {

void update_gradient_scale(Worker& worker, const Update& update, const double* weights) {
  if (update.needs_norm() || update.is_weighted())
    worker.ops().update_gradient_scale(
        update.gradient_rule(), update.needs_norm() ? worker.squares() : nullptr, weights, worker.state());
}

void update_whole(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole) {
  double* const squares = worker.parameter_squares();
  if (update.needs_directions())
    update.find_directions(worker.ops(), worker.state(), memory, worker.gradients(), whole,
                           update.terms(whole), squares);
  update.apply(worker.ops(), worker.state(), memory, worker.gradients(), whole, squares);
}

void update_alone(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole,
                  const double* weights) {
  if (update.needs_norm())
    worker.ops().sum_of_squares(worker.gradients(), worker.squares(), update.trained(whole).size());
  update_gradient_scale(worker, update, weights);
  update_whole(worker, update, memory, whole);
}

void all_reduce_sums(Worker& worker, Worker& computed, Collective& everyone, const Update& update,
                     const GradientNorm& norm, const float* gradient, Range mine) {
  if (!update.needs_norm() && !update.is_weighted()) return;
  double squares = 0, weights = 0;
  if (update.needs_norm()) {
    const Range trained = update.trained(mine);
    squares = norm.sum_of_squares(worker, everyone, gradient + (trained.begin - mine.begin), trained);
  }
  if (update.is_weighted()) {
    computed.context().copy_to_host(&weights, computed.own_weights(), sizeof(double));
    everyone.all_reduce({&weights, 1});
  }
  const double sums[] = {squares, weights};
  worker.context().copy_to_device(worker.squares(), sums, sizeof(sums));
  update_gradient_scale(worker, update, worker.weights());
}

void update_part(Worker& worker, Collective& member, const Update& update, const ParameterMemory& memory,
                 float* gradient, Range mine) {
  double* const squares = worker.parameter_squares();
  if (update.needs_directions()) {
    const std::vector<PairwiseTerm> terms = update.terms(mine);
    update.find_directions(worker.ops(), worker.state(), memory, gradient, mine, terms, squares);
    std::vector<double> sums(terms.size());
    worker.context().copy_to_host(sums.data(), squares, sums.size() * sizeof(double));
    sums = sum_over_members(member, terms, sums, worker.most_parameter_squares(), update.squares());
    worker.context().copy_to_device(squares, sums.data(), sums.size() * sizeof(double));
  }
  update.apply(worker.ops(), worker.state(), memory, gradient, mine, squares);
}

}  // namespace dtrain
