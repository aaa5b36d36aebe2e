// What every use of libhdf5 needs, in whichever folder: the lock, silence, handles that close themselves,
// errors as exceptions.
#pragma once

#include <mutex>
#include <string_view>
#include <utility>

#include <hdf5.h>

namespace dtrain {

/// Holds the process's lock on libhdf5, which is not thread safe as most systems build it, and keeps the
/// library from printing on this thread (each thread has a stack of errors of its own, and says itself
/// whether it is printed). Nobody calls the library without a session.
class Hdf5Session {
 public:
  Hdf5Session();

 private:
  std::scoped_lock<std::mutex> lock_;
};

/// Whether these words are in what libhdf5 said as the last call failed.
bool hdf5_said(std::string_view words);

/// Throws Error: what was being done, and libhdf5's innermost reason for its failure.
[[noreturn]] void throw_hdf5_error(std::string_view doing);

/// Throws Error with libhdf5's innermost reason when `result`, of any of its calls, says that it failed.
template <class Result>
Result checked(Result result, std::string_view doing) {
  if (result < 0) throw_hdf5_error(doing);
  return result;
}

/// Owns an identifier of any kind (file, group, dataset, attribute, type, space, property list), or none.
/// Whoever makes or destroys a handle holds a session.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  /// A negative identifier is none.
  explicit Hdf5Handle(hid_t id) : id_(id) {}
  /// Throws Error, as checked() does, where the identifier is negative.
  Hdf5Handle(hid_t id, std::string_view doing) : id_(checked(id, doing)) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(other.release()) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  operator hid_t() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  /// Gives the identifier up, to a caller that closes it and looks whether that fails.
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

}  // namespace dtrain
