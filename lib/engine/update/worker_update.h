// The end of a step in one slot of one replica.
#pragma once

#include "collective/collective.h"
#include "engine/state/parameter_store.h"
#include "engine/update/gradient_norm.h"
#include "engine/update/gradient_reducer.h"
#include "engine/update/last_gradient.h"
#include "engine/update/update.h"
#include "engine/worker.h"
#include "program/parameter_update.h"

namespace dtrain {

/// Runs the instructions of an UpdateProgram for one worker, on its thread.
class WorkerUpdate final : public ParameterUpdate {
 public:
  struct Parts {
    Worker& computing;  // runs the step's plan
    // The worker that updates the parameters: the computing worker, or a worker on the host that updates the
    // parameters for a GPU.
    Worker& updating;
    Collective& replicas;  // connects this slot's workers, one per replica
    Collective& everyone;  // connects the workers of all slots and replicas
    Collective& sharers;   // connects the workers that have shares of this slot's summed gradient
    int slots;             // number of slots of each replica
    const Update& update;
    const ParameterStore& store;
    GradientReducer& reducer;
    const GradientNorm* norm;  // null if there is one replica with one slot
    LastGradient& last;        // records the location of the gradient
    bool records_gradient;     // false if another replica records the same gradient
  };
  explicit WorkerUpdate(const Parts& parts) : parts_(parts) {}

  void run(const AllReduceGradients& work) override;
  void run(const AllReduceRowWeights& work) override;
  void run(const JoinReductions& work) override;
  void run(const ReduceScatterGradients& work) override;
  void run(const AddPenaltyGradients& work) override;
  void run(const SumSquares& work) override;
  void run(const AllReduceSquares& work) override;
  void run(const AllReduceRowWeightsOnHost& work) override;
  void run(const ScaleGradient& work) override;
  void run(const FindDirections& work) override;
  void run(const AllReduceDirections& work) override;
  void run(const UpdateParameters& work) override;
  void run(const SynchronizeReplicas& work) override;
  void run(const ConstrainParameters& work) override;
  void run(const SynchronizeDevice& work) override;
  void run(const GatherUpdated& work) override;

 private:
  /// Returns the address of the sum of row weights, in the memory of the updating worker; null for
  /// RowWeightSum::none.
  const double* sum_of(RowWeightSum weights) const;
  /// Returns the address of element `begin` of the layout in the summed gradient.
  float* gradient_at(int64_t begin) const;

  Parts parts_;
};

}  // namespace dtrain
