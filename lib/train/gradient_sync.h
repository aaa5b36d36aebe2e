// How the replicas' gradients become one update.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/collective.h"
#include "train/update.h"

namespace dtrain {

class Replica;
class Worker;

/// One object for all replicas; each calls with itself, from its own thread. A step's order: begin, ready (as
/// backward goes on), complete, end.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  /// Where the gradients meet, for people: "in one memory".
  virtual std::string_view where() const = 0;
  /// What people should know of it before the run; "" for nothing.
  virtual std::string advice() const { return ""; }
  /// The parameters that each replica computes with, by rank.
  virtual ParameterMemory& memory_of(int rank) = 0;
  /// Where parameters and slots are to be read and written between steps: all of these.
  virtual std::span<const std::unique_ptr<ParameterMemory>> memories() = 0;
  /// What it takes of the host's memory besides what its replicas on the CPU have.
  virtual size_t host_bytes() const { return 0; }
  /// Whose ops and context work on one of memories() between steps.
  virtual Worker& owner_of(size_t memory) = 0;

  /// The first thing in a step.
  virtual void begin(Replica&) {}
  /// The gradients below `end` have been enqueued. Captured with the computation, as complete() is.
  virtual void ready(Replica&, int64_t /*end*/) {}
  /// All have.
  virtual void complete(Replica&) {}
  /// The step's last thing, not captured: members may meet.
  virtual void end(Replica&, Collective&) {}
  /// Whether steps need no host thread to end, so that the next may be enqueued behind one that computes.
  virtual bool runs_ahead() const { return false; }
  /// To be called by the thread that waits for the devices; throws where they failed.
  virtual void check() {}
  virtual void abort() noexcept {}
};

/// The one that suits the replicas' devices: none (one replica), by the memory that all of them share, NCCL
/// (a GPU each), or else by way of the host's memory. `bucket_bytes`: how much of the gradient is summed at a
/// time while backward goes on, with NCCL.
std::unique_ptr<GradientSync> make_gradient_sync(std::span<const std::unique_ptr<Replica>> replicas,
                                                 const ParameterLayout& layout, const Update& update,
                                                 int64_t bucket_bytes);

}  // namespace dtrain
