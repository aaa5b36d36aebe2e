// The instructions of a program as plain data. Operands are ids of values; ValueId::none means that a call
// does not have the operand. execute.cpp runs the instructions, and operands.h lists the values that each
// instruction reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/view.h"
#include "collective/collective.h"
#include "ops/specs.h"
#include "program/ids.h"

namespace dtrain {

/// The location from which a parameter is read.
struct ParameterPlace {
  // Offset in the slot's layout; -1: the parameter is read from copies in `value` and `weights`.
  int64_t offset = -1;
  ValueId value = ValueId::none;  // float32 copy
  // Copy in the compute type; equal to `value` if the compute type is float32.
  ValueId weights = ValueId::none;
  int64_t at = 0;  // index of the parameter's first element in both copies
};

/// The location where a parameter's gradient is written.
struct GradientPlace {
  // Offset in the slot's gradients. -1: the gradient is not needed, or it is written only to `value`.
  int64_t offset = -1;
  /// A separate array for the gradient, used if several layers share the parameter or if the gradient belongs
  /// to a bucket. If `offset` is also set, the array is only used by frames that accumulate gradients. These
  /// frames write the gradient to the array, and AccumulateGradient then adds it to the gradient at `offset`.
  ValueId value = ValueId::none;
  int64_t at = 0;  // index of the parameter's first element in `value`
  bool is_wanted() const { return offset >= 0 || value != ValueId::none; }
};

/// The arguments of a call of a prepared layer, forward or backward.
struct LayerCall {
  NodeId node = NodeId::none;  // node whose layer is called
  int slot = 0;
  std::vector<ValueId> inputs, outputs;  // in backward: ValueId::none for values that are not read
  std::vector<ValueId> masks;            // masks of the inputs; empty if no input has one
  std::vector<ValueId> diff_outputs, diff_inputs;
  ValueId saved = ValueId::none, addend = ValueId::none, scratch = ValueId::none;
  std::vector<ParameterPlace> parameters;
  std::vector<GradientPlace> gradients;
  // Number of layers that share the parameters. Each layer contributes 1/users of the value of a moving
  // statistic.
  int users = 1;
};

struct LayerForward {
  CallId call = CallId::none;
  // Number of doubles that each replica contributes to the all-gather within the call. 0 if there is no
  // all-gather.
  int64_t gathered = 0;
};

struct LayerBackward {
  CallId call = CallId::none;
  int64_t gathered = 0;
};

/// Makes `to` a view of the memory of `from`. The instruction does no work, and assign_buffers() removes it.
struct PassOn {
  ValueId from = ValueId::none, to = ValueId::none;
};

/// Adds a head's loss to the total of the loss. Also writes the gradient of the prediction if it is needed.
struct ComputeLoss {
  size_t head = 0;
  ValueId prediction = ValueId::none, target = ValueId::none, weights = ValueId::none;
  ValueId diff_prediction = ValueId::none;
  int64_t rows = 0, columns = 0, positions = 1, rows_per_weight = 1;
  size_t total = 0;
};

/// Adds to the totals of a head's metrics. `total`: index of the first of these totals. `weights`: the row
/// weights for weighted metrics. `unweighted`: the row weights for the other metrics, which are 0 for masked
/// rows and 1 for all other rows; none if no rows are masked.
struct ComputeMetrics {
  size_t head = 0;
  ValueId prediction = ValueId::none, target = ValueId::none, weights = ValueId::none,
          unweighted = ValueId::none;
  int64_t rows = 0, columns = 0, rows_per_weight = 1;
  size_t total = 0;
};

/// Divides the penalty on a layer's output by the number of samples of the global batch, and adds the result
/// to the total with index `total`. Each replica adds the penalty for its own samples.
struct AddActivityPenalty {
  ValueId value = ValueId::none;
  PenaltySpec penalty;
  int64_t elements = 0;
  size_t total = 0;
};

/// Writes the gradient of the penalty on a layer's output.
struct ComputeActivityGradient {
  ValueId value = ValueId::none, to = ValueId::none;
  PenaltySpec penalty;
  int64_t elements = 0;
};

/// Applies a mask to row weights. `to` has `elements` numbers, one per row. Each number in `weights` is the
/// weight of `per_weight` rows, and each element of the mask applies to `per_mask` rows. If there are no
/// `weights`, all rows that are not masked have weight 1.
struct MaskWeights {
  ValueId weights = ValueId::none, mask = ValueId::none, to = ValueId::none;
  int64_t elements = 0, per_weight = 1, per_mask = 1;
};

struct SumWeights {
  ValueId weights = ValueId::none;
  int64_t elements = 0;
  size_t total = 0;
};

struct ReorderValue {
  ReorderId reorder = ReorderId::none;
  ValueId from = ValueId::none, to = ValueId::none;
};

/// Converts parameters from float32 to the compute type.
struct CastParameters {
  ValueId from = ValueId::none, to = ValueId::none;
  int64_t elements = 0;
};

struct SendValue {
  LinkId link = LinkId::none;
  ValueId value = ValueId::none;
};

struct SendParameter {
  LinkId link = LinkId::none;
  int64_t offset = 0;  // offset in the slot's layout
};

struct ReceiveValue {
  LinkId link = LinkId::none;
  ValueId value = ValueId::none;
};

/// Starts to gather a range of sharded parameters from the replicas that store them.
struct GatherParameters {
  Range range;  // range of the layout
  ValueId to = ValueId::none;
};

/// Makes the device wait for the gathers of the values in `gathered`, before later instructions read these
/// values.
struct JoinGathered {
  std::vector<ValueId> gathered;
};

/// Sums the gradients that several readers of a value contribute. Then applies the gradient of the activation
/// that computed the value, and sums the rows of the result to get the bias gradient.
struct SumGradients {
  ActivationSpec activation;  // linear: no activation
  ValueId activated = ValueId::none;
  std::vector<ValueId> sources;
  ValueId sum = ValueId::none;
  GradientPlace bias;
  int64_t elements = 0, columns = 0;
};

struct SumBiasGradient {
  ValueId gradient = ValueId::none;
  GradientPlace bias;
  int64_t rows = 0, columns = 0;
};

/// Adds a parameter's gradient to the gradient of earlier microbatches. Does nothing in the first microbatch.
struct AccumulateGradient {
  ValueId from = ValueId::none;
  int64_t offset = 0;  // offset in the slot's gradients
  int64_t elements = 0;
};

/// Adds the gradient that one layer contributes to a shared parameter. The first contribution replaces the
/// old gradient, except if gradients of earlier microbatches are accumulated.
struct AddSharedGradient {
  ValueId from = ValueId::none;
  GradientPlace to;
  bool is_first = false;
  int64_t elements = 0;
};

/// Writes the gradient of a parameter that no loss depends on: zero or, for a moving statistic, the value
/// that leaves the statistic unchanged.
struct ZeroGradient {
  GradientPlace to;
  bool is_statistic = false;
  ParameterPlace statistic;
  int64_t elements = 0;
};

struct ZeroBucket {
  ValueId bucket = ValueId::none;
};

/// Sums the replicas' gradients in a range of the layout.
struct ReduceBucket {
  Range range;
  ValueId bucket = ValueId::none;
};

/// Marks that the gradients in [0, end) of the trained parameters are complete: all instructions that compute
/// them are before this mark.
struct GradientsReady {
  int64_t end = 0;
};

// The instructions below run at the end of a step (update_program.h). Their ranges refer to the slot's
// layout. Each replica runs them after the gradients of all its microbatches were added.

/// The sum of row weights by which the gradient is divided. `none`: rows have no weights. `own`: the sum of
/// this replica, which has all rows. `summed`: the sum over all replicas.
enum class RowWeightSum : uint8_t { none, own, summed };

/// Starts an all-reduce of the gradients in a range, on the devices.
struct AllReduceGradients {
  Range range;
};

/// Starts an all-reduce of the sum of row weights, on the devices.
struct AllReduceRowWeights {};

/// Makes the device wait for all-reduces that have started, before later instructions read the sums.
/// `with_other_slots`: also waits until all slots of this process have run this instruction. This ensures
/// that, if another process fails, either all slots update their parameters, or no slot does.
struct JoinReductions {
  bool with_other_slots = false;
};

/// Sums the replicas' gradients in host memory or in the memory of one GPU. This replica gets the sum of the
/// gradients in `share`.
struct ReduceScatterGradients {
  Range share;
};

/// Adds the gradients of the penalties on the parameters in a range to the summed gradient.
struct AddPenaltyGradients {
  Range range;
  RowWeightSum weights = RowWeightSum::none;
};

/// Sums the squares of the gradient on the replica's device.
struct SumSquares {
  Range range;
};

/// Sums the squares of the whole model's gradient over all slots and replicas. This replica contributes the
/// squares in `range`. Waits for the device.
struct AllReduceSquares {
  Range range;
};

/// Sums the weights of all rows over all slots and replicas, through host memory. Waits for the device.
struct AllReduceRowWeightsOnHost {};

/// Computes the factor by which the gradient is scaled, from the gradient's norm and the weights of the rows.
struct ScaleGradient {
  RowWeightSum weights = RowWeightSum::none;
};

/// For optimizers that use norms of whole parameters: replaces the gradient by the direction of the step, and
/// sums the squares of each parameter and of its direction.
struct FindDirections {
  Range range;
};

/// Adds up the sums of squares that FindDirections has computed on each replica. Waits for the device.
struct AllReduceDirections {
  Range range;
};

/// Updates the parameters, the statistics and the optimizer's slots in a range.
struct UpdateParameters {
  Range range;
};

/// Waits until all replicas have reached this instruction.
struct SynchronizeReplicas {};

/// Applies the constraints of parameters in a range (WeightRules::constrain).
struct ConstrainParameters {
  Range range;
};

/// Waits until the device has finished its work.
struct SynchronizeDevice {};

/// Copies to this replica the parameters that other replicas have updated.
struct GatherUpdated {};

using Work = std::variant<
    LayerForward, LayerBackward, PassOn, ComputeLoss, ComputeMetrics, AddActivityPenalty,
    ComputeActivityGradient, MaskWeights, SumWeights, ReorderValue, CastParameters, SendValue, SendParameter,
    ReceiveValue, GatherParameters, JoinGathered, SumGradients, SumBiasGradient, AccumulateGradient,
    AddSharedGradient, ZeroGradient, ZeroBucket, ReduceBucket, GradientsReady, AllReduceGradients,
    AllReduceRowWeights, JoinReductions, ReduceScatterGradients, AddPenaltyGradients, SumSquares,
    AllReduceSquares, AllReduceRowWeightsOnHost, ScaleGradient, FindDirections, AllReduceDirections,
    UpdateParameters, SynchronizeReplicas, ConstrainParameters, SynchronizeDevice, GatherUpdated>;

enum class Phase : uint8_t { forward, loss, backward, reduce, update };

struct Instruction {
  int slot = 0;
  Phase phase = Phase::forward;
  NodeId node = NodeId::none;  // node of the graph for which the instruction computes
  std::string name;            // "conv2d_1 forward"
  Work work;
};

}  // namespace dtrain
