#include "checkpoint/sparse_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // declares file drivers in newer versions of libhdf5
#endif

#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Adapts a SparseFile to libhdf5's virtual file driver interface.
struct SparseFileDriver {
  struct Open {
    H5FD_t base{};  // must be the first member, because libhdf5 requires it
    SparseFile* file = nullptr;
    haddr_t end = 0;
  };
  static Open* of(H5FD_t* base) { return reinterpret_cast<Open*>(base); }
  static const Open* of(const H5FD_t* base) { return reinterpret_cast<const Open*>(base); }

  static H5FD_t* open(const char*, unsigned, hid_t access_list, haddr_t) {
    const auto* info = static_cast<SparseFile* const*>(H5Pget_driver_info(access_list));
    auto* made = info ? new (std::nothrow) Open : nullptr;
    if (made == nullptr) return nullptr;
    made->file = *info;
    return &made->base;
  }

  static herr_t close(H5FD_t* base) {
    of(base)->file->size_ = of(base)->end;
    delete of(base);
    return 0;
  }

  static herr_t query(const H5FD_t*, unsigned long* features) {
    if (features) *features = 0;
    return 0;
  }

  static haddr_t get_end(const H5FD_t* base, H5FD_mem_t) { return of(base)->end; }

  static haddr_t get_size(const H5FD_t* base, H5FD_mem_t) {
    return std::max<haddr_t>(of(base)->end, of(base)->file->size_);
  }

  static herr_t set_end(H5FD_t* base, H5FD_mem_t, haddr_t end) {
    of(base)->end = end;
    return 0;
  }

  static herr_t read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* out) {
    of(base)->file->read(offset, {static_cast<std::byte*>(out), size});
    return 0;
  }

  static herr_t write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t offset, size_t size, const void* in) {
    try {
      of(base)->file->write(offset, {static_cast<const std::byte*>(in), size});
    } catch (const std::bad_alloc&) {
      return -1;
    }
    return 0;
  }

  static H5FD_class_t description() {
    H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
    driver.version = H5FD_CLASS_VERSION;
    driver.value = static_cast<H5FD_class_value_t>(512);  // the first value that libhdf5 does not reserve
#endif
    driver.name = "dtrain_sparse";
    driver.maxaddr = std::numeric_limits<int64_t>::max();
    driver.fc_degree = H5F_CLOSE_STRONG;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the access list stores a pointer.
    driver.fapl_size = sizeof(SparseFile*);
    driver.open = open;
    driver.close = close;
    driver.query = query;
    driver.get_eoa = get_end;
    driver.set_eoa = set_end;
    driver.get_eof = get_size;
    driver.read = read;
    driver.write = write;
    return driver;
  }
};

void SparseFile::install(hid_t access_list) {
  static const H5FD_class_t description = SparseFileDriver::description();
  // The driver stays registered. libhdf5 releases a file's reference to its driver before it calls the
  // driver's close function. If this were the last reference, libhdf5 would use freed memory.
  static const hid_t driver = checked(H5FDregister(&description), "register a driver");
  SparseFile* self = this;
  checked(H5Pset_driver(access_list, driver, &self), "use a driver");
}

void SparseFile::write(size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t within = offset % kPage, count = std::min(bytes.size(), kPage - within);
    std::memcpy(pages_[offset / kPage].data() + within, bytes.data(), count);
    offset += count;
    bytes = bytes.subspan(count);
  }
}

void SparseFile::refer(size_t offset, std::span<const std::byte> bytes) {
  arrays_[offset] = bytes;
  size_ = std::max(size_, offset + bytes.size());
}

const std::byte* SparseFile::find(size_t offset, size_t& end) const {
  if (auto array = arrays_.upper_bound(offset); array != arrays_.begin()) {
    --array;
    end = array->first + array->second.size();
    if (offset < end) return array->second.data() + (offset - array->first);
  }
  end = (offset / kPage + 1) * kPage;
  const auto page = pages_.find(offset / kPage);
  return page == pages_.end() ? nullptr : page->second.data() + offset % kPage;
}

void SparseFile::read(size_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    size_t end = 0;
    const std::byte* found = find(offset, end);
    const size_t count = std::min(bytes.size(), end - offset);
    if (found)
      std::memcpy(bytes.data(), found, count);
    else
      std::memset(bytes.data(), 0, count);
    offset += count;
    bytes = bytes.subspan(count);
  }
}

std::vector<std::span<const std::byte>> SparseFile::parts() {
  std::vector<std::span<const std::byte>> parts;
  size_t at = 0;
  const auto fill_up_to = [&](size_t end) {
    if (end <= at) return;
    read(at, between_.emplace_back(end - at));
    parts.push_back(between_.back());
    at = end;
  };
  for (const auto& [offset, bytes] : arrays_) {
    fill_up_to(offset);
    parts.push_back(bytes);
    at += bytes.size();
  }
  fill_up_to(size_);
  return parts;
}

}  // namespace dtrain
