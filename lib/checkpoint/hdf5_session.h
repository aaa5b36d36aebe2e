// What every use of libhdf5 in this folder needs: the lock, closing handles, errors as exceptions.
#pragma once

#include <mutex>
#include <string_view>
#include <utility>

#include <hdf5.h>

namespace dtrain {

/// Holds the process's lock on libhdf5 and keeps the library from printing; nothing else here may call it
/// without.
class Hdf5Session {
 public:
  Hdf5Session();

 private:
  std::scoped_lock<std::mutex> lock_;
};

/// Throws Error with libhdf5's innermost reason when `result`, of any of its calls, says that it failed.
template <class Result>
Result checked(Result result, std::string_view doing);

[[noreturn]] void throw_hdf5_error(std::string_view doing);

template <class Result>
Result checked(Result result, std::string_view doing) {
  if (result < 0) throw_hdf5_error(doing);
  return result;
}

/// Owns an identifier of any kind (file, group, dataset, attribute, type, space, property list).
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, std::string_view doing) : id_(checked(id, doing)) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  operator hid_t() const { return id_; }
  /// For a close that may fail.
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_;
};

}  // namespace dtrain
