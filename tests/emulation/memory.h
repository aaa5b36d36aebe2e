// Device memory. The host can access it only while device work runs. All allocations are recorded, and guard
// bytes after each allocation detect writes past its end.
#pragma once

#include <cstddef>
#include <string>

namespace dtrain::emulation {

/// Creates empty memory of this size for each device. Callers of all functions in this file must hold the
/// lock of the machine.
void start_memory(int devices, size_t bytes_each);
/// Returns a description of leaked memory.
std::string stop_memory();

/// Returns memory filled with NaNs; null if the device does not have enough left.
void* allocate_memory(int device, size_t bytes);
/// Frees an allocation. Returns an error ("" if none).
std::string free_memory(void* data);
size_t free_bytes(int device);
/// Takes memory for drivers and libraries. Returns false if the device does not have enough left.
bool take_unasked(int device, size_t bytes);
void give_back_unasked(int device, size_t bytes);
size_t unasked_bytes(int device);
/// When the first kernel of a library is called, reserves memory for the library's kernels. Returns false if
/// the device does not have enough free memory.
bool load_kernels(int device, const char* library);
/// Returns the device that owns this memory, or -1.
int device_of(const void* data);
/// Returns whether these bytes lie within one allocation of device memory.
bool is_device_memory(const void* data, size_t bytes);
/// Describes allocations whose guards were overwritten.
std::string damaged_memory();

void* allocate_pinned(size_t bytes);
bool free_pinned(void* data);
bool is_pinned(const void* data);

/// Makes device memory accessible while an object of this class exists.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
};

}  // namespace dtrain::emulation
