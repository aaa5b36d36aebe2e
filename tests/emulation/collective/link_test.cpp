// Links between GPUs whose peer access is unreliable. A process tests each pair of GPUs only once, so this
// test uses a pair that no other test uses.
#include "collective/link.h"

#include <vector>

#include "emulation/other_machine.h"

namespace dtrain {

TEST_SUITE("gpu") {
  TEST_CASE("a link copies arrays correctly even if peer access corrupts copies") {
    const emulation::OtherMachine machine(
        {.devices = 20, .memory_bytes = size_t{16} << 20, .peers = emulation::PeerAccess::corrupting});
    const auto from = make_gpu_context({DeviceId::Kind::gpu, 14}, false);
    const auto to = make_gpu_context({DeviceId::Kind::gpu, 15}, false);
    const std::vector<float> sent = {1, 2, 3, 4};
    std::vector<float> arrived(sent.size());
    const size_t bytes = sent.size() * sizeof(float);
    Link link(*from, *to, bytes, Link::Keeping::lent, 1, false);
    from->attach();
    const Buffer src = from->allocate(bytes);
    from->copy_to_device(src.data(), sent.data(), bytes);
    link.send(src.data(), bytes);
    to->attach();
    const Buffer dst = to->allocate(bytes);
    link.receive(dst.data(), bytes);
    to->copy_to_host(arrived.data(), dst.data(), bytes);
    CHECK(arrived == sent);
  }
}

}  // namespace dtrain
