// The devices' memory: mapped so that the host can touch it only while device work runs, tracked, and with
// guards around every piece.
#pragma once

#include <cstddef>
#include <string>

namespace dtrain::emulation {

/// All under the machine's lock.
void start_memory(int devices, size_t bytes_each);
/// What was never given back.
std::string stop_memory();

/// Null where the device has not so much left. Full of NaNs.
void* allocate_memory(int device, size_t bytes);
/// What is wrong with giving it back ("" if nothing).
std::string free_memory(void* data);
size_t free_bytes(int device);
/// What drivers and libraries take beside what is asked of them. False where the device has not so much left.
bool take_unasked(int device, size_t bytes);
void give_back_unasked(int device, size_t bytes);
size_t unasked_bytes(int device);
/// A library's kernels, when one of them is called for the first time.
bool load_kernels(int device, const char* library);
/// The device whose memory this is, or -1.
int device_of(const void* data);
/// Whether these bytes are part of one piece of device memory.
bool is_device_memory(const void* data, size_t bytes);
/// Pieces whose guards were written on.
std::string damaged_memory();

void* allocate_pinned(size_t bytes);
bool free_pinned(void* data);
bool is_pinned(const void* data);

/// While one of these exists, device memory can be touched.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
};

}  // namespace dtrain::emulation
