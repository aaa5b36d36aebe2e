// The instructions of a program: plain data. Operands are ids of values; ValueId::none is an operand that a
// call does without. execute.cpp runs them, operands.h lists what each reads and writes.
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

/// Where a parameter is read.
struct ParameterPlace {
  int64_t offset = -1;              // in the slot's layout; -1: the slot has a copy, in values
  ValueId value = ValueId::none;    // the copy in float32
  ValueId weights = ValueId::none;  // and in the compute type: the same value where that is float32
  int64_t at = 0;                   // of the parameter's first element, in both
};

/// Where a parameter's gradient is written.
struct GradientPlace {
  int64_t offset = -1;  // among the slot's gradients; -1: no gradient is wanted, or it goes to a value
  /// Another user's gradient of the same parameter, or a bucket. With an offset as well: the gradient that is
  /// added there, in frames that accumulate.
  ValueId value = ValueId::none;
  int64_t at = 0;  // of the parameter's first element in the value
  bool is_wanted() const { return offset >= 0 || value != ValueId::none; }
};

/// The arguments of a call of a prepared layer, forward or backward.
struct LayerCall {
  NodeId node = NodeId::none;  // whose layer is called
  int slot = 0;
  std::vector<ValueId> inputs, outputs;  // backward: none where it doesn't read them
  std::vector<ValueId> diff_outputs, diff_inputs;
  ValueId saved = ValueId::none, addend = ValueId::none, scratch = ValueId::none;
  std::vector<ParameterPlace> parameters;
  std::vector<GradientPlace> gradients;
  int users = 1;  // layers that have these parameters: each gives its part of a statistic
};

struct LayerForward {
  CallId call = CallId::none;
  int64_t meeting = 0;  // numbers that each replica brings to a meeting within the call; 0: there is none
};

struct LayerBackward {
  CallId call = CallId::none;
  int64_t meeting = 0;
};

/// `to` is `from` under another name: the same memory. No work; assign_buffers removes it.
struct PassOn {
  ValueId from = ValueId::none, to = ValueId::none;
};

/// Adds a head's loss to its total, and writes the gradient of the prediction where it is wanted.
struct ComputeLoss {
  size_t head = 0;
  ValueId prediction = ValueId::none, target = ValueId::none, weights = ValueId::none;
  ValueId diff_prediction = ValueId::none;
  int64_t rows = 0, columns = 0, positions = 1, rows_per_weight = 1;
  size_t total = 0;
};

/// Adds to the totals of a head's metrics, of which the first is `total`.
struct ComputeMetrics {
  size_t head = 0;
  ValueId prediction = ValueId::none, target = ValueId::none, weights = ValueId::none;
  int64_t rows = 0, columns = 0, rows_per_weight = 1;
  size_t total = 0;
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

/// From float32 to the compute type.
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
  int64_t offset = 0;  // in the slot's layout
};

struct ReceiveValue {
  LinkId link = LinkId::none;
  ValueId value = ValueId::none;
};

/// Begins to bring parameters, which are in parts at the replicas, to this one.
struct GatherParameters {
  Range range;  // of the layout
  ValueId to = ValueId::none;
};

/// Later instructions find what has been gathered.
struct JoinGathered {
  std::vector<ValueId> gathered;
};

/// Sums the gradients that several readers of a value give back, undoes the activation that made the value,
/// and sums the bias's gradient over the rows of the result.
struct SumGradients {
  ActivationSpec activation;  // linear: there is none to undo
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

/// Adds a parameter's gradient to that of earlier microbatches; does nothing in the first one.
struct AccumulateGradient {
  ValueId from = ValueId::none;
  int64_t offset = 0;  // among the slot's gradients
  int64_t elements = 0;
};

/// Adds the gradient that one of several users of a parameter gives; the first replaces what is there.
struct AddSharedGradient {
  ValueId from = ValueId::none;
  GradientPlace to;
  bool is_first = false;
  int64_t elements = 0;
};

/// The gradient of a parameter that no loss depends on: zero, or for a statistic what keeps it as it is.
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

/// The gradients in [0, end) of the trained parameters have been enqueued.
struct GradientsReady {
  int64_t end = 0;
};

using Work = std::variant<LayerForward, LayerBackward, PassOn, ComputeLoss, ComputeMetrics, SumWeights,
                          ReorderValue, CastParameters, SendValue, SendParameter, ReceiveValue,
                          GatherParameters, JoinGathered, SumGradients, SumBiasGradient, AccumulateGradient,
                          AddSharedGradient, ZeroGradient, ZeroBucket, ReduceBucket, GradientsReady>;

enum class Phase : uint8_t { forward, loss, backward };

struct Instruction {
  int slot = 0;
  Phase phase = Phase::forward;
  NodeId node = NodeId::none;  // of the graph that it works for
  std::string name;            // "conv2d_1 forward"
  Work work;
};

}  // namespace dtrain
