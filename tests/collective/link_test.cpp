#include "collective/link.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collective/collective.h"
#include "device/device.h"

using namespace dtrain;

namespace {

std::unique_ptr<Context> cpu(int index) {
  return make_cpu_context({DeviceId::Kind::cpu, index}, {available_cores().front()}, false);
}

/// A link from one CPU context to another. Its arrays have up to 64 numbers.
struct Path {
  explicit Path(int most, bool spin = false, Link::Keeping keeping = Link::Keeping::lent)
      : link(*from, *to, 64 * sizeof(int), keeping, most, spin) {}
  std::unique_ptr<Context> from = cpu(0), to = cpu(1);
  Link link;
};

/// Runs `work` on a separate thread. join() returns "done" or "aborted".
class Worker {
 public:
  template <class Work>
  explicit Worker(Work work)
      : thread_([this, work] {
          try {
            work();
            how_ = "done";
          } catch (const Aborted&) {
            how_ = "aborted";
          }
          ended_ = true;
        }) {}
  ~Worker() {
    if (thread_.joinable()) thread_.join();
  }
  std::string join() {
    thread_.join();
    return how_;
  }
  /// Returns true if the work is still running after some time.
  bool waits() const {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return !ended_;
  }

 private:
  std::string how_;
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last member, because the thread writes to the other members
};

}  // namespace

TEST_CASE(
    "a link delivers arrays in the order of sending, with the contents that they had when they were sent") {
  for (const int most : {1, 2, 5})
    for (const bool spin : {false, true}) {
      CAPTURE(most);
      CAPTURE(spin);
      constexpr int kArrays = 500;
      Path path(most, spin);
      Worker sender([&] {
        // The sender has one buffer for each array that may be in flight. It overwrites a buffer only after
        // the buffer's previous array has been received.
        std::vector<std::vector<int>> places(static_cast<size_t>(most), std::vector<int>(64));
        std::vector<uint64_t> numbers(places.size(), 0);
        for (int i = 0; i < kArrays; ++i) {
          const size_t place = static_cast<size_t>(i % most);
          path.link.wait_received(numbers[place]);
          std::iota(places[place].begin(), places[place].end(), 1000 * i);
          numbers[place] =
              path.link.send(places[place].data(), static_cast<size_t>(i % 64 + 1) * sizeof(int));
          if (numbers[place] != static_cast<uint64_t>(i) + 1) throw Aborted();
        }
        path.link.wait_received(kArrays);
      });
      int wrong = 0;
      for (int i = 0; i < kArrays; ++i) {
        std::vector<int> found(64, -1), expected(64, -1);
        path.link.receive(found.data(), static_cast<size_t>(i % 64 + 1) * sizeof(int));
        std::iota(expected.begin(), expected.begin() + i % 64 + 1, 1000 * i);
        wrong += found != expected;
      }
      CHECK(wrong == 0);
      CHECK(sender.join() == "done");
    }
}

TEST_CASE("one thread may send and receive up to the link's capacity") {
  Path path(3);
  const std::vector<int> sent{1, 2, 3};
  for (const int& number : sent) path.link.send(&number, sizeof(int));
  for (const int number : sent) {
    int found = 0;
    path.link.receive(&found, sizeof(int));
    CHECK(found == number);
  }
  path.link.wait_received(0);  // nothing was sent, so it does not wait
  path.link.wait_received(3);
}

TEST_CASE("a sender waits while the link is full, a receiver while it is empty") {
  Path path(2);
  const int numbers[] = {1, 2, 3};
  std::atomic<int> sent{0};
  Worker sender([&] {
    for (const int& number : numbers) {
      path.link.send(&number, sizeof(int));
      ++sent;
    }
  });
  CHECK(sender.waits());
  CHECK(sent == 2);
  int found = 0;
  path.link.receive(&found, sizeof(int));
  CHECK(found == 1);
  CHECK(sender.join() == "done");
  Worker waiter([&] { path.link.wait_received(3); });
  path.link.receive(&found, sizeof(int));
  CHECK(found == 2);
  CHECK(waiter.waits());
  path.link.receive(&found, sizeof(int));
  CHECK(found == 3);
  CHECK(waiter.join() == "done");

  Worker receiver([&] { path.link.receive(&found, sizeof(int)); });
  CHECK(receiver.waits());
  path.link.send(&numbers[0], sizeof(int));
  CHECK(receiver.join() == "done");
  CHECK(found == 1);
}

TEST_CASE("abort wakes sender and receiver, and every later call throws") {
  for (const bool spin : {false, true}) {
    CAPTURE(spin);
    int number = 7, found = 0;
    {
      Path path(1, spin);
      path.link.send(&number, sizeof(int));
      Worker sender([&] { path.link.send(&number, sizeof(int)); });
      CHECK(sender.waits());
      path.link.abort();
      CHECK(sender.join() == "aborted");
    }
    {
      Path path(1, spin);
      path.link.send(&number, sizeof(int));
      Worker waiter([&] { path.link.wait_received(1); });
      CHECK(waiter.waits());
      path.link.abort();
      CHECK(waiter.join() == "aborted");
    }
    Path path(8, spin);
    Worker receiver([&] { path.link.receive(&found, sizeof(int)); });
    CHECK(receiver.waits());
    path.link.abort();
    path.link.abort();
    CHECK(receiver.join() == "aborted");
    CHECK(found == 0);
    CHECK_THROWS_AS(path.link.send(&number, sizeof(int)), Aborted);
    CHECK_THROWS_AS(path.link.receive(&found, sizeof(int)), Aborted);
    CHECK_THROWS_AS(path.link.wait_received(0), Aborted);
  }
}

TEST_CASE("the sender may change an array as soon as the link has copied the array") {
  Path path(2, false, Link::Keeping::copied);
  int array[4] = {1, 2, 3, 4}, got[4] = {};
  for (const int round : {0, 1, 2}) {
    array[0] = round;
    path.link.send(array, sizeof(array));
    array[0] = -1;
    path.link.receive(got, sizeof(got));
    CHECK(got[0] == round);
    CHECK(got[3] == 4);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("a link between GPUs copies an array after earlier writes and before later writes to the array") {
    constexpr int kFloats = 100000;
    constexpr size_t kArray = kFloats * sizeof(float);
    for (const Link::Keeping keeping : {Link::Keeping::lent, Link::Keeping::copied}) {
      const auto from = make_gpu_context({DeviceId::Kind::gpu, 0}, false);
      const auto to = make_gpu_context({DeviceId::Kind::gpu, 0}, false);
      Link link(*from, *to, kArray, keeping, 2, false);
      const Buffer src = from->allocate(kArray), dst = to->allocate(kArray);
      const Buffer ones = from->allocate_host(kArray), results = to->allocate_host(kArray);
      std::fill_n(ones.f32(), kFloats, 1.0f);
      for (int step = 0; step < 20; ++step) {
        from->enqueue_copy(src.data(), ones.data(), kArray);
        const uint64_t number = link.send(src.data(), kArray);
        if (keeping == Link::Keeping::copied) from->enqueue_zero(src.data(), kArray);
        link.receive(dst.data(), kArray);
        if (keeping == Link::Keeping::lent) {
          link.wait_received(number);
          from->enqueue_zero(src.data(), kArray);
        }
        to->enqueue_copy(results.data(), dst.data(), kArray);
        to->synchronize();
        CHECK(std::all_of(results.f32(), results.f32() + kFloats, [](float x) { return x == 1; }));
        to->enqueue_zero(dst.data(), kArray);
      }
      from->synchronize();
      to->synchronize();
    }
  }
}
