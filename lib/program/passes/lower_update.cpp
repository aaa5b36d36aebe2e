#include <algorithm>
#include <utility>

#include "program/update_program.h"

namespace dtrain {

namespace {

class UpdateLowering {
 public:
  explicit UpdateLowering(const UpdateRequest& request) : request_(request) {}

  UpdateProgram run() {
    lower_reduction();
    lower_factor();
    lower_parameters();
    return std::move(program_);
  }

 private:
  /// Returns true if this replica has the whole gradient after the reduction, so that its update needs no
  /// data from other replicas.
  bool is_local() const {
    return !request_.has_other_slots && (request_.reduction == GradientReduction::none ||
                                         request_.reduction == GradientReduction::all_reduce);
  }

  void lower_reduction() {
    switch (request_.reduction) {
      case GradientReduction::none:
        return;
      case GradientReduction::in_backward:
        if (request_.joins_backward)
          add(program_.on_host, Phase::reduce, "reductions join", JoinReductions{});
        return;
      case GradientReduction::all_reduce:
        add_buckets();
        if (request_.has_row_weights && is_local())
          add(program_.reduction, Phase::reduce, "row weights all-reduce", AllReduceRowWeights{});
        add(program_.on_device, Phase::reduce, "reductions join", JoinReductions{});
        return;
      case GradientReduction::over_processes:
        add_buckets();
        add(program_.on_host, Phase::reduce, "reductions join", JoinReductions{request_.has_other_slots});
        return;
      case GradientReduction::reduce_scatter:
        add(program_.on_host, Phase::reduce, "gradients reduce-scatter",
            ReduceScatterGradients{request_.share});
        return;
    }
  }

  void add_buckets() {
    for (const Range& bucket : reduction_buckets(request_.gradients, request_.bucket))
      add(program_.reduction, Phase::reduce, "gradients all-reduce", AllReduceGradients{bucket});
  }

  /// Emits the all-reduce of the row weights, unless other instructions sum them. Returns the kind of sum by
  /// which the gradient is divided. (With GradientReduction::over_processes, the row weights are one of the
  /// totals that JoinReductions waits for.)
  RowWeightSum lower_row_weights() {
    if (!request_.has_row_weights) return RowWeightSum::none;
    if (request_.reduction == GradientReduction::over_processes) return RowWeightSum::summed;
    if (!is_local()) add(list(), Phase::reduce, "row weights all-reduce", AllReduceRowWeightsOnHost{});
    const bool is_own = is_local() && request_.reduction == GradientReduction::none;
    return is_own ? RowWeightSum::own : RowWeightSum::summed;
  }

  /// Emits the computation of the factor by which the gradient is scaled. The factor depends on clipping, on
  /// the loss scale of float16, and on the row weights. The norm includes the gradients of penalties.
  void lower_factor() {
    const Range trained = overlap(request_.share, {0, request_.trained});
    const RowWeightSum weights = lower_row_weights();
    if (request_.has_penalties)
      add(list(), Phase::update, "penalty gradients", AddPenaltyGradients{trained, weights});
    // No replica may update its share of a common copy while another replica still reads the copy.
    if (request_.penalties_read_all && request_.updates_common_copy) {
      add(list(), Phase::update, "device synchronize", SynchronizeDevice{});
      add(list(), Phase::update, "replicas synchronize", SynchronizeReplicas{});
    }
    if (request_.needs_norm && is_local())
      add(list(), Phase::update, "gradient squares", SumSquares{trained});
    if (request_.needs_norm && !is_local())
      add(list(), Phase::reduce, "gradient squares all-reduce",
          AllReduceSquares{request_.counts_share ? trained : Range{}});
    if (request_.needs_norm || request_.has_row_weights || request_.may_skip)
      add(list(), Phase::update, "gradient scale", ScaleGradient{weights});
  }

  void lower_parameters() {
    const bool has_shares =
        request_.reduction != GradientReduction::none && request_.reduction != GradientReduction::all_reduce;
    if (request_.needs_directions) {
      add(list(), Phase::update, "directions", FindDirections{request_.share});
      if (has_shares)
        add(list(), Phase::reduce, "directions all-reduce", AllReduceDirections{request_.share});
    }
    add(list(), Phase::update, "parameters update", UpdateParameters{request_.share});
    if (request_.shares_memory) add(list(), Phase::update, "device synchronize", SynchronizeDevice{});
    if (request_.gathers_parameters) add(list(), Phase::update, "parameters gather", GatherUpdated{});
    if (request_.has_constraints) lower_constraints();
  }

  /// Emits the instructions that apply the constraints. A constraint needs whole parameters, but a replica's
  /// share may end within a parameter. If the replicas update a common copy of the parameters, each replica
  /// constrains the parameters that begin in its share, after all replicas have updated their shares. If each
  /// replica has a copy, each replica constrains all parameters.
  void lower_constraints() {
    if (request_.updates_common_copy)
      add(list(), Phase::update, "replicas synchronize", SynchronizeReplicas{});
    const Range trained{0, request_.trained};
    add(list(), Phase::update, "parameters constrain",
        ConstrainParameters{request_.gathers_parameters ? trained : overlap(request_.share, trained)});
    if (request_.shares_memory) add(list(), Phase::update, "device synchronize", SynchronizeDevice{});
  }

  std::vector<Instruction>& list() { return is_local() ? program_.on_device : program_.on_host; }

  void add(std::vector<Instruction>& list, Phase phase, const char* name, Work work) const {
    list.push_back({request_.slot, phase, NodeId::none, name, std::move(work)});
  }

  const UpdateRequest& request_;
  UpdateProgram program_;
};

}  // namespace

UpdateProgram lower_update(const UpdateRequest& request) {
  return UpdateLowering(request).run();
}

std::vector<Range> reduction_buckets(int64_t floats, int64_t bucket) {
  std::vector<Range> buckets;
  for (int64_t begin = 0; begin < floats; begin += bucket)
    buckets.push_back({begin, std::min(begin + bucket, floats)});
  return buckets;
}

}  // namespace dtrain
