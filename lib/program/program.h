// A training step, an evaluation or a prediction of one batch size as plain data: values, instructions over
// them, and the place of every byte. It knows nothing of devices; a Plan runs it.
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

/// The purpose and the size that a program is made for.
struct PlanKey {
  enum class Purpose {
    training,    // forward, losses, metrics, backward
    evaluation,  // forward as at inference, losses, metrics
    prediction,  // forward as at inference
  };
  Purpose purpose = Purpose::training;
  int64_t batch = 1;  // samples, at least one
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes the 0 inside a defaulted <=> for a pointer.
  auto operator<=>(const PlanKey&) const = default;
};

/// An array that instructions of one slot write and read.
struct ProgramValue {
  enum class Kind : uint8_t {
    column,      // of the batch
    activation,  // an output of a node
    gradient,    // of an output of a node
    parameter,   // a copy of parameters
    parameter_gradient,
    saved,    // from a layer's forward to its backward
    scratch,  // during one call
  };
  Kind kind = Kind::activation;
  ValueRef of;       // of columns that are inputs, activations and gradients: the node's output
  std::string name;  // "dense_1", "gradient of dense_1"
  Layout layout = Layout::plain;
  int slot = 0;
  size_t bytes = 0;
  BufferId buffer = BufferId::none;  // once buffers are assigned; none of a value that is never written
};

/// The bytes of a slot's memory that a plan takes.
struct ArenaBytes {
  size_t frame = 0;   // for each microbatch that is under way
  size_t shared = 0;  // for all of them: what no microbatch needs from its forward to its backward part
  size_t links = 0;   // for each, too: gradients on their way from other slots, in the links' own memory
};

/// Memory of a slot that a program needs while it runs.
struct ProgramBuffer {
  std::string name;  // of its first value
  int slot = 0;
  size_t bytes = 0;
  bool is_kept = false;  // to the end: an output, or lent to another slot, which reads it when it gets there
  bool is_lent = false;  // to another slot
  bool from_start = false;  // written before the first instruction
  Lifetime lifetime;        // the first and the last instruction that it is kept for
  bool is_shared = false;   // by the microbatches that are under way: a part of ArenaBytes::shared
  size_t offset = 0;        // of its first byte, in what the slot has for the microbatch, or for all of them
};

/// A way from one slot to another.
struct ProgramLink {
  int from = 0, to = 0;
  size_t bytes = 0;
  Link::Keeping keeping = Link::Keeping::lent;
  int most = 1;  // arrays that are sent and not received yet
};

struct ProgramReorder {
  int slot = 0;
  Shape shape;  // of the batch of images
  Layout from = Layout::plain, to = Layout::plain;
};

/// A loss and the metrics of one output.
struct ProgramHead {
  std::shared_ptr<const Loss> loss;  // as it is computed from the prediction that ComputeLoss reads
  std::vector<HeadMetric> metrics;
};

/// A column or an output: a value, and its View without data.
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
  /// In an order in which each comes after what it depends on. A schedule may run them otherwise, as long as
  /// that holds for each frame.
  std::vector<Instruction> instructions;
  std::vector<ProgramArray> columns;  // inputs, then (but for prediction) targets, then weights if any
  size_t input_columns = 0;
  std::vector<ProgramArray> outputs;  // of the model, for prediction; in plain layout
  std::vector<ArenaBytes> arenas;     // by slot; without links, whose copies depend on the devices

  int slots() const { return static_cast<int>(arenas.size()); }
};

}  // namespace dtrain
