#include "processes/activity.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

namespace dtrain {

namespace {

void wait() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

}  // namespace

TEST_CASE("a process is active if one of its other threads computes") {
  Activity activity;
  wait();
  CHECK(!activity.since_last_call());
  std::atomic<bool> ends{false};
  std::thread computing([&] {
    while (!ends) continue;
  });
  wait();
  CHECK(activity.since_last_call());
  ends = true;
  computing.join();
  activity.since_last_call();
  wait();
  CHECK(!activity.since_last_call());
}

TEST_CASE("the activity of the measuring thread does not count") {
  Activity activity;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end) continue;
  CHECK(!activity.since_last_call());
}

}  // namespace dtrain
