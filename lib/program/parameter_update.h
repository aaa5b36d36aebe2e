// The interface through which instructions reduce gradients and update parameters.
#pragma once

#include "program/instruction.h"

namespace dtrain {

/// The update of one slot of one replica. Runs the instructions of an UpdateProgram at the end of a step, and
/// the all-reduces that the backward pass starts. All replicas run the same kinds of instructions in the same
/// order.
class ParameterUpdate {
 public:
  virtual ~ParameterUpdate() = default;
  virtual void run(const AllReduceGradients& work) = 0;
  virtual void run(const AllReduceRowWeights& work) = 0;
  virtual void run(const JoinReductions& work) = 0;
  virtual void run(const ReduceScatterGradients& work) = 0;
  virtual void run(const AddPenaltyGradients& work) = 0;
  virtual void run(const SumSquares& work) = 0;
  virtual void run(const AllReduceSquares& work) = 0;
  virtual void run(const AllReduceRowWeightsOnHost& work) = 0;
  virtual void run(const ScaleGradient& work) = 0;
  virtual void run(const FindDirections& work) = 0;
  virtual void run(const AllReduceDirections& work) = 0;
  virtual void run(const UpdateParameters& work) = 0;
  virtual void run(const SynchronizeReplicas& work) = 0;
  virtual void run(const ConstrainParameters& work) = 0;
  virtual void run(const SynchronizeDevice& work) = 0;
  virtual void run(const GatherUpdated& work) = 0;
};

/// An instruction that a ParameterUpdate runs.
template <class W>
concept UpdateWork = requires(ParameterUpdate& update, const W& work) {
  update.run(work);
};

}  // namespace dtrain
