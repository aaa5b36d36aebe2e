#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("a pool runs all tasks, and wait() waits for them") {
  ThreadPool pool("testing", 3);
  CHECK(pool.size() == 3);
  std::vector<int> done(1000, 0);
  for (int round = 1; round <= 3; ++round) {
    for (int& task : done) pool.submit([&task] { ++task; });
    pool.wait();
    CHECK(pool.idle());
    CHECK(done == std::vector<int>(1000, round));
  }
}

TEST_CASE("a pool with one thread runs tasks in the background, in the order of submission") {
  std::vector<int> order;
  std::promise<void> go;
  {
    ThreadPool pool("testing", 1);
    pool.submit([&] { go.get_future().wait(); });
    for (int i = 0; i < 5; ++i) pool.submit([&, i] { order.push_back(i); });
    CHECK(!pool.idle());
    go.set_value();
  }  // the destructor lets queued tasks run
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("a pool with several threads runs tasks at the same time") {
  std::promise<void> first, second;
  ThreadPool pool("testing", 2);
  pool.submit([&] {
    first.set_value();
    second.get_future().wait();
  });
  pool.submit([&] {
    first.get_future().wait();
    second.set_value();
  });
  pool.wait();
}

TEST_CASE("after all tasks have run, wait() rethrows the first exception, but only once") {
  int ran = 0;
  ThreadPool pool("testing", 1);
  pool.submit([] { throw std::runtime_error("first"); });
  pool.submit([] { throw std::runtime_error("second"); });
  pool.submit([&] { ++ran; });
  CHECK_THROWS_WITH(pool.wait(), "first");
  CHECK(ran == 1);
  pool.wait();
  pool.submit([&] { ++ran; });
  pool.wait();
  CHECK(ran == 2);
}

TEST_CASE("a task's function is destroyed before wait() returns") {
  ThreadPool pool("testing", 2);
  const auto held = std::make_shared<int>(0);
  for (int i = 0; i < 100; ++i) {
    pool.submit([held] {});
    pool.wait();
    CHECK(held.use_count() == 1);
  }
}

TEST_CASE("cancel() drops queued tasks and waits for the running task") {
  std::promise<void> begun;
  std::atomic<bool> ended = false, dropped_ran = false;
  ThreadPool pool("testing", 1);
  pool.submit([&] {
    begun.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended = true;
  });
  pool.submit([&] { dropped_ran = true; });
  begun.get_future().wait();
  pool.cancel();
  CHECK(ended);
  CHECK(pool.idle());
  pool.wait();
  CHECK(!dropped_ran);
}

TEST_CASE("a pool may have no threads") {
  ThreadPool pool("testing", 0, 0);
  CHECK(pool.size() == 0);
  CHECK(pool.idle());
  pool.wait();
  pool.cancel();
}

}  // namespace
}  // namespace dtrain
