#include "emulation/memory.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace dtrain::emulation {
namespace {

constexpr size_t kAlignment = 256;  // guaranteed by cudaMalloc
constexpr size_t kGuard = 256;      // minimum size after each allocation
constexpr int kGuardByte = 0xa5;
constexpr int kFreshByte = 0xff;  // a number with these bytes is NaN in every floating-point type
constexpr size_t kHugePage = size_t{2} << 20;

struct Region {
  std::byte* data = nullptr;
  size_t bytes = 0;
  size_t used = 0;
  size_t unasked = 0;                   // bytes of `used` that drivers and libraries take
  std::set<std::string> loaded;         // libraries whose kernels were loaded
  std::map<std::byte*, size_t> pieces;  // size in bytes by address
  bool holds(const void* p) const { return p >= data && p < data + bytes; }
};

std::vector<Region> regions;
std::map<void*, size_t> pinned;
int unlocks = 0;

size_t room_for(size_t bytes) {
  return (bytes + kGuard + kAlignment - 1) / kAlignment * kAlignment;
}

/// If the fault is in device memory, prints a message. The test still ends with a segmentation fault.
void explain_fault(int, siginfo_t* info, void*) {
  for (const Region& region : regions) {
    if (!region.holds(info->si_addr)) continue;
    constexpr char kText[] = "the host touched device memory\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
  }
  signal(SIGSEGV, SIG_DFL);
}

void protect(int protection) {
  for (const Region& region : regions) mprotect(region.data, region.bytes, protection);
}

Region* region_of(const void* data) {
  for (Region& region : regions) {
    if (region.holds(data)) return &region;
  }
  return nullptr;
}

bool guard_is_whole(const std::byte* data, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(data + bytes, room_for(bytes) - bytes);
  const bool whole = std::all_of(data + bytes, data + room_for(bytes),
                                 [](std::byte b) { return b == static_cast<std::byte>(kGuardByte); });
  ASAN_POISON_MEMORY_REGION(data + bytes, room_for(bytes) - bytes);
  return whole;
}

/// Returns to the system all huge pages that lie completely within freed memory. Changing the protection of
/// device memory is then faster.
void give_back_pages(std::byte* data, size_t bytes) {
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

/// Returns the first gap that is large enough.
std::byte* find_room(const Region& region, size_t bytes) {
  std::byte* at = region.data;
  for (const auto& [data, size] : region.pieces) {
    if (static_cast<size_t>(data - at) >= room_for(bytes)) return at;
    at = data + room_for(size);
  }
  return static_cast<size_t>(region.data + region.bytes - at) >= room_for(bytes) ? at : nullptr;
}

}  // namespace

void start_memory(int devices, size_t bytes_each) {
  struct sigaction action {};
  action.sa_sigaction = explain_fault;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before {};
  sigaction(SIGSEGV, nullptr, &before);
  if (before.sa_handler == SIG_DFL) sigaction(SIGSEGV, &action, nullptr);
  for (int i = 0; i < devices; ++i) {
    // The region is twice as large as the memory, so that fragmentation does not exhaust the region.
    const size_t bytes = 2 * bytes_each + (size_t{1} << 20);
    void* data = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    madvise(data, bytes, MADV_HUGEPAGE);
    // The protection of all pages changes several times per kernel launch. Without huge pages, these changes
    // would take longer than most kernels.
    madvise(data, bytes, MADV_HUGEPAGE);
    ASAN_POISON_MEMORY_REGION(data, bytes);
    regions.push_back({static_cast<std::byte*>(data), bytes, 0, 0, {}, {}});
  }
}

std::string stop_memory() {
  std::string left;
  for (size_t i = 0; i < regions.size(); ++i) {
    Region& region = regions[i];
    for (const auto& [data, bytes] : region.pieces) {
      left += fmt::format("{} bytes of device {} were never freed\n", bytes, i);
    }
    ASAN_UNPOISON_MEMORY_REGION(region.data, region.bytes);
    munmap(region.data, region.bytes);
  }
  regions.clear();
  for (const auto& [data, bytes] : pinned) {
    left += fmt::format("{} bytes of pinned host memory were never freed\n", bytes);
  }
  return left;
}

void* allocate_memory(int device, size_t bytes) {
  Region& region = regions.at(static_cast<size_t>(device));
  if (bytes > free_bytes(device)) return nullptr;
  std::byte* data = find_room(region, bytes);
  if (!data) return nullptr;
  region.pieces.emplace(data, bytes);
  region.used += bytes;
  const Unlocked unlocked;
  ASAN_UNPOISON_MEMORY_REGION(data, room_for(bytes));
  std::memset(data, kFreshByte, bytes);
  std::memset(data + bytes, kGuardByte, room_for(bytes) - bytes);
  ASAN_POISON_MEMORY_REGION(data + bytes, room_for(bytes) - bytes);
  return data;
}

std::string free_memory(void* data) {
  Region* region = region_of(data);
  const auto at = static_cast<std::byte*>(data);
  if (!region || !region->pieces.contains(at)) return "freed memory that was never allocated";
  const size_t bytes = region->pieces.at(at);
  const Unlocked unlocked;
  const bool whole = guard_is_whole(at, bytes);
  std::memset(data, kFreshByte, bytes);
  ASAN_POISON_MEMORY_REGION(data, room_for(bytes));
  give_back_pages(at, bytes);
  region->pieces.erase(at);
  region->used -= bytes;
  return whole ? "" : fmt::format("something wrote past the end of {} bytes of device memory", bytes);
}

size_t free_bytes(int device) {
  const Region& region = regions.at(static_cast<size_t>(device));
  return (region.bytes - (size_t{1} << 20)) / 2 - region.used;
}

bool take_unasked(int device, size_t bytes) {
  Region& region = regions.at(static_cast<size_t>(device));
  if (bytes > free_bytes(device)) return false;
  region.used += bytes;
  region.unasked += bytes;
  return true;
}

void give_back_unasked(int device, size_t bytes) {
  Region& region = regions.at(static_cast<size_t>(device));
  region.used -= bytes;
  region.unasked -= bytes;
}

size_t unasked_bytes(int device) {
  return regions.at(static_cast<size_t>(device)).unasked;
}

bool load_kernels(int device, const char* library) {
  Region& region = regions.at(static_cast<size_t>(device));
  if (!region.loaded.insert(library).second) return true;
  return take_unasked(device, region.bytes / 100);  // 1 % of the memory, on a GPU of any size
}

int device_of(const void* data) {
  const Region* region = region_of(data);
  return region ? static_cast<int>(region - regions.data()) : -1;
}

bool is_device_memory(const void* data, size_t bytes) {
  const Region* region = region_of(data);
  if (!region) return false;
  const auto at = static_cast<std::byte*>(const_cast<void*>(data));
  auto piece = region->pieces.upper_bound(at);
  if (piece == region->pieces.begin()) return false;
  --piece;
  return at + bytes <= piece->first + piece->second;
}

std::string damaged_memory() {
  const Unlocked unlocked;
  for (const Region& region : regions) {
    for (const auto& [data, bytes] : region.pieces) {
      if (!guard_is_whole(data, bytes)) {
        return fmt::format("something wrote past the end of {} bytes of device memory", bytes);
      }
    }
  }
  return "";
}

void* allocate_pinned(size_t bytes) {
  void* data = ::operator new (bytes, std::align_val_t{4096}, std::nothrow);
  if (!data) return nullptr;
  std::memset(data, kFreshByte, bytes);
  pinned.emplace(data, bytes);
  return data;
}

bool free_pinned(void* data) {
  if (pinned.erase(data) == 0) return false;
  ::operator delete (data, std::align_val_t{4096});
  return true;
}

bool is_pinned(const void* data) {
  auto piece = pinned.upper_bound(const_cast<void*>(data));
  if (piece == pinned.begin()) return false;
  --piece;
  return static_cast<const std::byte*>(data) < static_cast<std::byte*>(piece->first) + piece->second;
}

Unlocked::Unlocked() {
  if (unlocks++ == 0) protect(PROT_READ | PROT_WRITE);
}
Unlocked::~Unlocked() {
  if (--unlocks == 0) protect(PROT_NONE);
}

}  // namespace dtrain::emulation
