// Sends messages between processes with MPI.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "processes/shim/mpi_shim.h"
#include "processes/transport.h"

namespace dtrain {

/// Throws Error "<what> failed: <MPI's description>" if `error` is not 0. `what`: the name of the MPI
/// function, such as "MPI_Irecv".
void check_mpi(const MpiTable& mpi, int error, const char* what);

/// Sends a message as chunks of at most 1 GiB, because MPI counts bytes as int. Chunks of one message arrive
/// in order, like messages with the same tag.
class MpiTransport final : public Transport {
 public:
  /// MPI must be initialized, and must not be finalized before this object is destroyed.
  explicit MpiTransport(const MpiTable& mpi);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Request send(int to, int tag, std::span<const std::byte> bytes) override;
  Request receive(int from, int tag, std::span<std::byte> bytes) override;
  bool test(Request request) override;
  void abort() noexcept override { aborted_ = true; }

 private:
  /// The chunks that have not finished yet.
  using Chunks = std::deque<MpiRequest>;

  Request keep(Chunks chunks);
  void check_usable() const;

  const MpiTable& mpi_;
  int rank_ = 0;
  int size_ = 1;
  int64_t next_ = 1;
  std::unordered_map<int64_t, Chunks> running_;
  std::atomic<bool> aborted_{false};
};

}  // namespace dtrain
