#include "base/thread_pool.h"

#include <utility>

#include "base/threads.h"

namespace dtrain {

ThreadPool::ThreadPool(const std::string& purpose, int64_t threads, int64_t least) {
  try {
    threads_.reserve(
        static_cast<size_t>(threads));  // so that push_back() cannot throw after a thread has started
    while (size() < threads) threads_.push_back(start_thread(purpose, [this] { serve(); }));
  } catch (...) {
    if (size() >= least) return;  // the pool works with fewer threads, only more slowly
    join();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  join();
}

void ThreadPool::join() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push(std::move(task));
  }
  changed_.notify_one();
}

bool ThreadPool::idle() {
  const std::lock_guard lock(mutex_);
  return has_finished();
}

void ThreadPool::wait() {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return has_finished(); });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::cancel() {
  std::queue<std::function<void()>> dropped;  // destroyed after the mutex is released
  std::unique_lock lock(mutex_);
  std::swap(tasks_, dropped);
  finished_.wait(lock, [&] { return has_finished(); });
}

void ThreadPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop();
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    task = nullptr;
    lock.lock();
    if (!error_) error_ = std::move(error);
    --running_;
    if (has_finished()) finished_.notify_all();
  }
}

}  // namespace dtrain
