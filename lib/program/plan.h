// A graph prepared for one batch size: its program, and the device objects that the program uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collective/channel.h"
#include "collective/collective.h"
#include "nn/graph.h"
#include "nn/head.h"
#include "nn/parameters.h"
#include "ops/ops.h"
#include "program/plan_options.h"
#include "program/prepared_layers.h"
#include "program/program.h"
#include "program/state_shards.h"

namespace dtrain {

/// A program and its prepared layers. After construction, only the state of prepared layers and the arrays in
/// transfer between slots change. For this reason, each slot's instructions must be run by one thread at a
/// time. Running the instructions allocates no memory. Values that one slot computes and another slot reads
/// are sent over a Channel. A plan also contains the instructions of slots of other processes
/// (PlanOptions::remote), so that all processes have the same program. This process does not run these
/// instructions.
class Plan {
 public:
  using Purpose = PlanKey::Purpose;
  enum class Part { forward, backward };  // the forward part includes the losses

  /// `ops`: indexed by slot; for each slot of another process, contains the Ops of some slot of this process
  /// instead. `slots`: the slot of each node of the graph; if it is empty, all nodes are on slot 0.
  Plan(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads, std::span<Ops* const> ops,
       std::span<const int> slots, const PlanKey& key, const PlanOptions& options = {});

  const Program& program() const { return program_; }
  const PlanKey& key() const { return program_.key; }
  int64_t batch() const { return program_.key.batch; }
  int slots() const { return program_.slots(); }
  const ArenaBytes& arena_bytes(int slot = 0) const { return arena_bytes_[static_cast<size_t>(slot)]; }
  /// Return the layers' remarks: warnings prefixed with the layers' names, and each note once.
  std::span<const std::string> warnings() const { return warnings_; }
  std::span<const std::string> notes() const { return notes_; }

  /// Returns true if an instruction belongs to this slot and part.
  static bool belongs(const Instruction& instruction, int slot, Part part) {
    const bool backward = instruction.phase == Phase::backward;
    return instruction.slot == slot && backward == (part == Part::backward);
  }
  /// Takes part in the collective calls of a slot without running the part. Must be called if this replica
  /// has no rows of a microbatch, but other replicas do. The collective calls are the same in the plans for
  /// all batch sizes.
  void join_collectives(int slot, Part part, Collective& replicas, StateShards* shards) const;
  /// Announces that this slot will receive the values of one microbatch. If the sender is in another process,
  /// the values may then arrive before the slot's thread waits for them. The slot's thread must call this
  /// function once for each microbatch, in the order in which it runs the microbatches.
  void expect(int slot) const;
  /// Returns a text that describes the planned transfers between slots. The texts of two processes are equal
  /// if they plan the same transfers.
  std::string transfers() const;
  /// Makes every thread that waits for another slot (execute.h) throw Aborted. This also applies to threads
  /// that start to wait later.
  void abort() const noexcept;

  // The functions below are used by the instructions.

  Ops& ops(int slot) const { return *ops_[static_cast<size_t>(slot)]; }
  PreparedLayer& layer(NodeId node) const { return *layers_[node]; }
  Reorder& reorder(ReorderId id) const { return *reorders_[id]; }
  Channel& link(LinkId id) const { return *links_[id]; }

 private:
  void make_links(const PlanOptions& options);
  void make_link(LinkId id, Part part, const PlanOptions& options);

  const std::vector<Ops*> ops_;  // indexed by slot
  Program program_;
  PreparedLayers layers_;
  std::vector<std::string> warnings_, notes_;
  IdVector<ReorderId, std::unique_ptr<Reorder>> reorders_;
  IdVector<LinkId, std::unique_ptr<Channel>> links_;  // null if both slots are in other processes
  std::vector<ArenaBytes> arena_bytes_;               // indexed by slot
};

/// Returns the number of doubles that each replica contributes to an all-gather within the instruction; 0: no
/// all-gather.
int64_t gathered_by(const Instruction& instruction);

}  // namespace dtrain
