// Peer access that is missing, fails, or corrupts copies. A process tests each pair of GPUs only once, so
// every test case uses a pair that no other test case uses.
#include "device/peer_access.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "device/gpu_info.h"
#include "emulation/other_machine.h"

namespace dtrain {
namespace {

using emulation::Machine;
using emulation::OtherMachine;
using emulation::PeerAccess;

Machine machine_with(PeerAccess peers) {
  return {.devices = 20, .memory_bytes = size_t{16} << 20, .peers = peers};
}

/// Connects GPUs `a` and a + 1, and returns the note about them.
std::string note_of(int a) {
  const auto one = make_gpu_context({DeviceId::Kind::gpu, a}, false);
  const auto other = make_gpu_context({DeviceId::Kind::gpu, a + 1}, false);
  connect_gpus(*one, *other);
  const std::string pair = fmt::format("gpu:{} and gpu:{}", a, a + 1);
  for (const std::string& note : peer_access_notes())
    if (note.starts_with(pair)) return note.substr(pair.size());
  return "";
}

/// Returns whether access to the next GPU's memory is already enabled.
bool is_enabled(int a) {
  cudaSetDevice(a);
  const cudaError_t status = cudaDeviceEnablePeerAccess(a + 1, 0);
  cudaGetLastError();
  return status == cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("peer access is enabled without a note") {
    const OtherMachine machine(machine_with(PeerAccess::available));
    CHECK(note_of(2) == "");
    CHECK(is_enabled(2));
  }

  TEST_CASE("GPUs without peer access are connected through the host, without a note") {
    const OtherMachine machine(machine_with(PeerAccess::absent));
    CHECK(note_of(4) == "");
  }

  TEST_CASE("peer access is used even if it exists in only one direction") {
    const OtherMachine machine(machine_with(PeerAccess::one_way));
    CHECK(note_of(6) == "");
    CHECK(is_enabled(6));
  }

  TEST_CASE("if peer access cannot be enabled, there is a note") {
    const OtherMachine machine(machine_with(PeerAccess::refused));
    const std::string note = note_of(8);
    CHECK(note.starts_with(" cannot access each other's memory because of CUDA error 711, "));
    CHECK(note_of(8) == note);  // the pair is tested only once
    const std::vector<std::string> all = peer_access_notes();
    CHECK(std::count(all.begin(), all.end(), "gpu:8 and gpu:9" + note) == 1);
  }

  TEST_CASE("peer access is disabled if it corrupts copies") {
    const OtherMachine machine(machine_with(PeerAccess::corrupting));
    CHECK(note_of(10).starts_with(": data copied by peer access arrive damaged"));
    CHECK_FALSE(is_enabled(10));
  }

  TEST_CASE("with DTRAIN_P2P=0, peer access is not enabled") {
    const OtherMachine machine(machine_with(PeerAccess::corrupting));
    setenv("DTRAIN_P2P", "0", 1);
    CHECK(note_of(12) == "");
    unsetenv("DTRAIN_P2P");
    CHECK_FALSE(is_enabled(12));
  }
}

}  // namespace dtrain
