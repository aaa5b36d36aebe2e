// A training step, an evaluation or a prediction for one batch size as plain data: values, instructions, and
// the offset of every buffer. A program does not refer to devices; a Plan runs it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/view.h"
#include "collective/link.h"
#include "nn/head.h"
#include "program/arena.h"
#include "program/ids.h"
#include "program/instruction.h"

namespace dtrain {

/// Purpose and batch size of a program, and the length of its sequences.
struct PlanKey {
  enum class Purpose {
    training,    // forward, losses, metrics, backward
    evaluation,  // forward in inference mode, losses, metrics
    prediction,  // forward in inference mode
  };
  Purpose purpose = Purpose::training;
  int64_t batch = 1;   // number of samples, at least one
  int64_t length = 0;  // number of positions of padded sequences (nn/shorter_model.h); 0: all positions
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy mistakes the 0 in a defaulted <=> for a pointer.
  auto operator<=>(const PlanKey&) const = default;
};

/// An array that instructions of one slot write and read.
struct ProgramValue {
  enum class Kind : uint8_t {
    column,      // column of the batch
    activation,  // output of a node
    gradient,    // gradient of an output of a node
    parameter,   // copy of parameters
    parameter_gradient,
    saved,    // data that a layer keeps from its forward call to its backward call
    scratch,  // memory that is used during one call
  };
  Kind kind = Kind::activation;
  ValueRef of;       // for input columns, activations and gradients: the node's output
  std::string name;  // "dense_1", "gradient of dense_1"
  Layout layout = Layout::plain;
  int slot = 0;
  size_t bytes = 0;
  BufferId buffer = BufferId::none;  // set by assign_buffers; none for a value that is never written
};

/// Bytes of a slot's memory that a plan needs.
struct ArenaBytes {
  size_t frame = 0;  // bytes per microbatch in flight
  // Bytes for values that are not kept from forward to backward. All microbatches in flight share these
  // bytes.
  size_t shared = 0;
  /// Bytes of link memory per microbatch in flight, for gradients that other slots send.
  size_t links = 0;
  /// Bytes in host memory for copies of values that are sent to or received from other processes. All
  /// microbatches in flight share these bytes.
  size_t transfers = 0;
};

/// A part of a slot's memory that a program needs while it runs.
struct ProgramBuffer {
  ValueId value = ValueId::none;  // the first value in the buffer
  int slot = 0;
  size_t bytes = 0;
  /// Whether the buffer is needed until the end of the program, because it contains an output, or because
  /// another slot may read it at any time.
  bool is_kept = false;
  bool is_lent = false;     // whether another slot reads the buffer directly
  bool from_start = false;  // whether the buffer is written before the first instruction
  Lifetime lifetime;        // first and last instruction that use the buffer
  // Whether microbatches in flight share the buffer. A shared buffer is part of ArenaBytes::shared.
  bool is_shared = false;
  size_t offset = 0;  // offset in the slot's frame memory or shared memory
};

/// A connection from one slot to another.
struct ProgramLink {
  int from = 0, to = 0;
  size_t bytes = 0;
  Link::Keeping keeping = Link::Keeping::lent;
  int most = 1;  // maximum number of arrays that were sent but not yet received
};

struct ProgramReorder {
  int slot = 0;
  Shape shape;  // shape of the image batch
  Layout from = Layout::plain, to = Layout::plain;
};

/// The loss and the metrics of one head.
struct ProgramHead {
  // The loss in the form for the value that ComputeLoss reads (logits or predictions).
  std::shared_ptr<const Loss> loss;
  std::vector<HeadMetric> metrics;
};

/// A column or an output: its value, and a View of it without data.
struct ProgramArray {
  ValueId value = ValueId::none;
  View view;
};

struct Program {
  PlanKey key;
  IdVector<ValueId, ProgramValue> values;
  IdVector<CallId, LayerCall> calls;
  IdVector<LinkId, ProgramLink> links;
  IdVector<ReorderId, ProgramReorder> reorders;
  IdVector<BufferId, ProgramBuffer> buffers;
  std::vector<ProgramHead> heads;
  /// Each instruction comes after the instructions on which it depends. A schedule may run the instructions
  /// of a frame in any other order that has this property.
  std::vector<Instruction> instructions;
  // Inputs, then (except in prediction) targets, then row weights if there are any.
  std::vector<ProgramArray> columns;
  size_t input_columns = 0;
  std::vector<ProgramArray> outputs;  // the model's outputs in plain layout; only for prediction
  /// Indexed by slot. `links` and `transfers` are not set, because they depend on the devices.
  std::vector<ArenaBytes> arenas;

  int slots() const { return static_cast<int>(arenas.size()); }
  /// Returns the name of a buffer, which is the name of its first value.
  const std::string& name_of(const ProgramBuffer& buffer) const { return values[buffer.value].name; }
};

}  // namespace dtrain
