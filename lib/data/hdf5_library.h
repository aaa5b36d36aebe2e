// What every use of libhdf5 in this folder needs: the lock, silence, closing of what was opened.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include <hdf5.h>

namespace dtrain {

/// Holds the process's lock on libhdf5 and keeps the library from printing, on this thread too (its stack of
/// errors, and whether that is printed, are a thread's own). Nothing in this folder calls it without.
class LibraryLock {
 public:
  LibraryLock();

 private:
  std::scoped_lock<std::mutex> lock_;
};

/// Owns an identifier of libhdf5's. The session is held by whoever makes or drops one.
class LibraryObject {
 public:
  LibraryObject() = default;
  LibraryObject(hid_t id, herr_t (*closer)(hid_t)) : id_(id), closer_(closer) {}
  LibraryObject(LibraryObject&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  LibraryObject& operator=(LibraryObject&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~LibraryObject() {
    if (id_ >= 0) closer_(id_);
  }
  operator hid_t() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  /// For a close that may fail.
  herr_t close() { return closer_(std::exchange(id_, -1)); }

 private:
  hid_t id_ = -1;
  herr_t (*closer_)(hid_t) = nullptr;
};

/// Whether libhdf5 said this while the call that just failed failed.
bool hdf5_said(const std::string& words);

}  // namespace dtrain
