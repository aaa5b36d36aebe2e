// Byte messages among the processes of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// Nonblocking messages with the semantics of MPI_Isend and MPI_Irecv for MPI_BYTE in MPI_COMM_WORLD. A
/// message may have any size. All calls except abort() must come from one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  /// These functions return the rank of this process, and the number of processes.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// A transfer that has not finished yet.
  struct Request {
    int64_t number = 0;
  };
  /// Starts to send `bytes` to process `to`; they must not change until the request is done. Messages with
  /// the same tag between the same two processes are received in the order in which they are sent. 0 <= tag <
  /// 32768 (the least upper bound that MPI guarantees).
  virtual Request send(int to, int tag, std::span<const std::byte> bytes) = 0;
  /// Starts to receive a message of exactly this size from process `from` with this tag.
  virtual Request receive(int from, int tag, std::span<std::byte> bytes) = 0;
  /// Makes progress, and returns whether the transfer has finished. A request must not be used again after
  /// that. Returns at once. Throws Error if the transfer has failed, or after abort().
  virtual bool test(Request request) = 0;
  /// Makes all later calls throw Error. May be called from any thread, and returns at once.
  virtual void abort() noexcept = 0;
};

}  // namespace dtrain
