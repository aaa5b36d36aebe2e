// That NCCL is as its documentation has it.
#include <nccl.h>
#include <vector>

#include <doctest/doctest.h>

#include "emulation/support.h"

namespace dtrain::emulation {
namespace {

/// A communicator for each of so many devices, all of this thread's.
std::vector<ncclComm_t> connect(int count) {
  std::vector<ncclComm_t> communicators(static_cast<size_t>(count));
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id) == ncclSuccess);
  CHECK(ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < count; ++rank) {
    CHECK(cudaSetDevice(rank) == cudaSuccess);
    CHECK(ncclCommInitRank(&communicators[static_cast<size_t>(rank)], count, id, rank) == ncclSuccess);
  }
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  return communicators;
}

void destroy(const std::vector<ncclComm_t>& communicators) {
  CHECK(ncclGroupStart() == ncclSuccess);
  for (const ncclComm_t communicator : communicators) CHECK(ncclCommDestroy(communicator) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
}

}  // namespace

TEST_CASE("emulated NCCL: communicators of one thread are destroyed together") {
  const Fresh fresh;
  destroy(connect(2));
  CHECK(take_failure() == "");
  for (const ncclComm_t communicator : connect(2)) ncclCommDestroy(communicator);
  CHECK(take_failure() == "an NCCL communicator is ended, and waits for others that are not");
}

}  // namespace dtrain::emulation
