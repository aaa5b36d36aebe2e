// The instructions of a program: plain data. Operands are ids of values; ValueId::none means that a call does
// not have the operand. execute.cpp runs instructions, operands.h lists what each reads and writes.
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
  int64_t offset = -1;  // offset in the slot's layout; -1: the slot reads a copy in `value` and `weights`
  ValueId value = ValueId::none;    // float32 copy
  ValueId weights = ValueId::none;  // copy in the compute type; the same value if that is float32
  int64_t at = 0;                   // index of the parameter's first element in both copies
};

/// The location where a parameter's gradient is written.
struct GradientPlace {
  // Offset in the slot's gradients; -1: the gradient is not needed, or goes only to `value`.
  int64_t offset = -1;
  /// A separate array for the gradient, if several layers share the parameter or the gradient belongs to a
  /// bucket. If `offset` is set, too, frames that accumulate write the gradient to this array, from which
  /// AccumulateGradient adds it at `offset`.
  ValueId value = ValueId::none;
  int64_t at = 0;  // index of the parameter's first element in `value`
  bool is_wanted() const { return offset >= 0 || value != ValueId::none; }
};

/// The arguments of a call of a prepared layer, forward or backward.
struct LayerCall {
  NodeId node = NodeId::none;  // node whose layer is called
  int slot = 0;
  std::vector<ValueId> inputs, outputs;  // in backward: none if the layer does not read them
  std::vector<ValueId> masks;            // masks of the inputs; empty if no input has one
  std::vector<ValueId> diff_outputs, diff_inputs;
  ValueId saved = ValueId::none, addend = ValueId::none, scratch = ValueId::none;
  std::vector<ParameterPlace> parameters;
  std::vector<GradientPlace> gradients;
  int users = 1;  // number of layers that share the parameters; each contributes 1/users of a moving
                  // statistic
};

struct LayerForward {
  CallId call = CallId::none;
  int64_t gathered = 0;  // doubles that each replica contributes to the all-gather within the call; 0: no
                         // all-gather
};

struct LayerBackward {
  CallId call = CallId::none;
  int64_t gathered = 0;
};

/// Makes `to` a view of the memory of `from`. It does no work; assign_buffers removes it.
struct PassOn {
  ValueId from = ValueId::none, to = ValueId::none;
};

/// Adds a head's loss to its total, and writes the gradient of the prediction if it is needed.
struct ComputeLoss {
  size_t head = 0;
  ValueId prediction = ValueId::none, target = ValueId::none, weights = ValueId::none;
  ValueId diff_prediction = ValueId::none;
  int64_t rows = 0, columns = 0, positions = 1, rows_per_weight = 1;
  size_t total = 0;
};

/// Adds to the totals of a head's metrics; `total` is the index of the first total. `weights` are the row
/// weights of weighted metrics. `unweighted` are the row weights of the other metrics: none, or 0 for masked
/// rows and 1 for all other rows.
struct ComputeMetrics {
  size_t head = 0;
  ValueId prediction = ValueId::none, target = ValueId::none, weights = ValueId::none,
          unweighted = ValueId::none;
  int64_t rows = 0, columns = 0, rows_per_weight = 1;
  size_t total = 0;
};

/// Adds the penalty on a layer's output to the total, divided by the number of samples of the global batch.
/// Each replica adds the penalty for its own samples.
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

/// Writes row weights that take a mask into account. `to` has `elements` numbers: `per_weight` for each
/// number of `weights` and `per_mask` for each element of the mask. Without `weights`, every weight is 1.
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

/// Converts float32 to the compute type.
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

/// Makes the device wait for gathers that have started, before later instructions read `gathered`.
struct JoinGathered {
  std::vector<ValueId> gathered;
};

/// Sums the gradients from several readers of a value, applies the gradient of the activation that computed
/// the value, and sums the bias's gradient over the rows of the result.
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

/// Adds a parameter's gradient to its gradient of earlier microbatches; does nothing in the first microbatch.
struct AccumulateGradient {
  ValueId from = ValueId::none;
  int64_t offset = 0;  // offset in the slot's gradients
  int64_t elements = 0;
};

/// Adds the gradient from one of the layers that share a parameter; the first one replaces the old contents.
struct AddSharedGradient {
  ValueId from = ValueId::none;
  GradientPlace to;
  bool is_first = false;
  int64_t elements = 0;
};

/// Writes the gradient of a parameter that no loss depends on: zero, or for a moving statistic the value that
/// leaves it unchanged.
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

/// Marks that all work that computes the gradients in [0, end) of the trained parameters has been enqueued.
struct GradientsReady {
  int64_t end = 0;
};

// The instructions below are the end of a step (update_program.h). Their ranges refer to the slot's layout.
// Each replica runs them with the gradient of the whole step.

/// The sum of row weights by which the gradient is divided. none: rows have no weights; own: this replica's
/// sum, because it has all rows; summed: the sum over all replicas.
enum class RowWeightSum : uint8_t { none, own, summed };

/// Starts an all-reduce of the gradients in a range, on the devices.
struct AllReduceGradients {
  Range range;
};

/// Starts an all-reduce of the sum of row weights, on the devices.
struct AllReduceRowWeights {};

/// Makes the device wait for all-reduces that have started, before later instructions read the sums.
/// `with_other_slots`: also waits until all slots of this process have done so. If another process fails,
/// either all slots update their parameters, or none.
struct JoinReductions {
  bool with_other_slots = false;
};

/// Sums the replicas' gradients in host memory or in the memory of one GPU; this replica gets the sum of
/// `share`.
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

/// Sums the squares of the whole model's gradient over all slots and replicas; this replica contributes the
/// squares in `range`. Waits for the device.
struct AllReduceSquares {
  Range range;
};

/// Sums the weights of all rows over all slots and replicas, through host memory. Waits for the device.
struct AllReduceRowWeightsOnHost {};

/// Computes the factor that scales the gradient, from its norm and the weights of the rows.
struct ScaleGradient {
  RowWeightSum weights = RowWeightSum::none;
};

/// For optimizers that use norms of whole parameters: replaces the gradient by the direction of the step, and
/// sums the squares of each parameter and of its direction.
struct FindDirections {
  Range range;
};

/// Sums, over the replicas, the squares that FindDirections computes. Waits for the device.
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

/// Waits until the device has finished.
struct SynchronizeDevice {};

/// Copies the updated parameters of the other replicas' shards to this replica.
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
  NodeId node = NodeId::none;  // node of the graph for which it computes
  std::string name;            // "conv2d_1 forward"
  Work work;
};

}  // namespace dtrain
