#include "data/files/mapped_file.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

/// A mapping of a file. on_bus_error() handles its bus errors. The list of regions only grows (released
/// regions are reused), so that the signal handler can walk it at any time.
struct MappedRegion {
  std::atomic<uintptr_t> begin{0}, end{0};  // begin is 0 if the region is free
  std::atomic<bool> failed{false};
  MappedRegion* next = nullptr;
};

namespace {

std::atomic<MappedRegion*> regions{nullptr};
std::mutex changing;
const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
struct sigaction handler_before {};

/// Replaces the page that the file cannot provide, and all pages after it, with zeros. A fault at any other
/// address is left to the previous handler, which gets it when the instruction is repeated.
///
/// The handler runs on the stack of the reading thread, in the middle of the code that reads. Compiled code
/// keeps nothing below its red zone, which the kernel preserves. Code that does otherwise (oneDNN 2.6's
/// sgemm) must not be given this memory: columns are copied out of it (data/columns/gather.h), and only
/// dtrain's parsers read text in it.
void on_bus_error(int, siginfo_t* info, void*) {
  const int saved = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (MappedRegion* region = regions; region; region = region->next) {
    const uintptr_t begin = region->begin, end = region->end;
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t page = address & ~(page_bytes - 1);
    region->failed = true;
    void* const zeros = mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) break;
    errno = saved;
    return;
  }
  sigaction(SIGBUS, &handler_before, nullptr);
  errno = saved;
}

MappedRegion* add_region(uintptr_t begin, uintptr_t end) {
  const std::lock_guard lock(changing);
  if (!regions) {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &handler_before);
  }
  MappedRegion* region = regions;
  while (region && region->begin != 0) region = region->next;
  if (!region) {
    region = new MappedRegion;  // never freed: a handler may be walking over it
    region->next = regions;
    regions = region;
  }
  region->failed = false;
  region->end = end;
  region->begin = begin;
  return region;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : file_(path), size_(static_cast<size_t>(file_.size())) {
  if (size_ == 0) return;
  void* const memory = file_.map();
  if (memory == MAP_FAILED) throw Error(fmt::format("{}: cannot be mapped: {}", path, std::strerror(errno)));
  data_ = static_cast<const std::byte*>(memory);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  region_ = add_region(begin, (begin + size_ + page_bytes - 1) / page_bytes * page_bytes);
}

MappedFile::~MappedFile() {
  if (!data_) return;
  region_->begin = 0;
  munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::check() const {
  file_.check_unchanged();
  if (region_ && region_->failed)
    throw Error(fmt::format("{}: a part of the file could not be read", file_.path()));
}

}  // namespace dtrain
