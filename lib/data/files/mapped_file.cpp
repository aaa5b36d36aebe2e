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

/// The address range of a mapped file. The signal handler on_bus_error() searches the list of all regions for
/// the address that caused the signal. The list only grows (free regions are reused), so the handler can
/// search it at any time.
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

/// Replaces the page that cannot be read from the file, and all pages of the region after it, with zeros. If
/// the address belongs to no mapped file, restores the previous handler. The processor then repeats the
/// instruction, and the previous handler gets the signal.
///
/// The handler runs on the stack of the reading thread, in the middle of the code that reads. Compiled code
/// stores nothing on the stack below its red zone, and the kernel preserves the red zone. Code that stores
/// data below the red zone (such as sgemm of oneDNN 2.6) must not read mapped memory. Therefore columns are
/// copied from mapped memory before they are used (data/columns/gather.h), and only dtrain's parsers read
/// text in mapped memory.
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
    region = new MappedRegion;  // never freed, because a handler may be reading it
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
  if (memory == MAP_FAILED)
    throw Error(fmt::format("{}: cannot be mapped into memory: {}", path, std::strerror(errno)));
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
