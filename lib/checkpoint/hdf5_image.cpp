#include "checkpoint/hdf5_image.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/layout.h"

namespace dtrain {

namespace {

hid_t file_type(DType type) {
  switch (type) {
    case DType::float32:
      return H5T_IEEE_F32LE;
    case DType::int32:
      return H5T_STD_I32LE;
    case DType::uint8:
      return H5T_STD_U8LE;
    case DType::bfloat16:
    case DType::float16:
    case DType::float64:
      break;
  }
  throw Error(fmt::format("checkpoints do not support arrays of {}", name_of(type)));
}

}  // namespace

Hdf5Image::Hdf5Image(SparseFile& target) : target_(target) {
  // Without timestamps, the bytes depend only on the content.
  checked(H5Pset_obj_track_times(file_list_, false), "disable timestamps");
  checked(H5Pset_obj_track_times(group_list_, false), "disable timestamps");
  checked(H5Pset_obj_track_times(dataset_list_, false), "disable timestamps");
  checked(H5Pset_layout(dataset_list_, H5D_CONTIGUOUS), "set a layout");
  checked(H5Pset_fill_time(dataset_list_, H5D_FILL_TIME_NEVER), "set the fill time of datasets");
  // With early allocation, each dataset gets its offset in the file when it is created. The array itself is
  // never passed to libhdf5.
  checked(H5Pset_alloc_time(dataset_list_, H5D_ALLOC_TIME_EARLY), "set the allocation time of datasets");
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), "create a property list");
  target.install(access);
  // Since format 1.8, attributes may be larger than 64 KiB. All later versions of the library can read this
  // format.
  checked(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), "choose a format");
  checked(H5Pset_alignment(access, 1, kAlignment), "align arrays");
  file_ = Hdf5Handle(H5Fcreate("image", H5F_ACC_TRUNC, file_list_, access), "create a file in memory");
}

void Hdf5Image::close() {
  checked(H5Fclose(file_.release()), "close the file");
}

/// Creates the parent groups one by one, because groups that libhdf5 creates automatically would have
/// timestamps.
Hdf5Handle Hdf5Image::make_group(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (groups_.insert(part).second)
      Hdf5Handle(H5Gcreate2(file_, part.c_str(), H5P_DEFAULT, group_list_, H5P_DEFAULT), "make " + part);
    if (end == std::string::npos) break;
  }
  return Hdf5Handle(H5Gopen2(file_, path.c_str(), H5P_DEFAULT), "open " + path);
}

void Hdf5Image::write_bytes(const std::string& path, const std::string& text) {
  write_array(path, {path, Shape{static_cast<int64_t>(text.size())}, DType::uint8, text.data()});
}

void Hdf5Image::write_array(const std::string& path, const ArrayRef& array) {
  const std::vector<hsize_t> extents(array.shape.begin(), array.shape.end());
  const Hdf5Handle space(extents.empty()
                             ? H5Screate(H5S_SCALAR)
                             : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                         "write " + path);
  write_dataset(path, file_type(array.dtype), space,
                {static_cast<const std::byte*>(array.data), array.bytes()});
}

void Hdf5Image::write_number(const std::string& path, const int64_t& number) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR), "write " + path);
  write_dataset(path, H5T_STD_I64LE, space, std::as_bytes(std::span(&number, 1)));
}

void Hdf5Image::write_dataset(const std::string& path, hid_t type, hid_t space,
                              std::span<const std::byte> bytes) {
  const std::string doing = "write " + path;
  const Hdf5Handle dataset(
      H5Dcreate2(file_, path.c_str(), type, space, H5P_DEFAULT, dataset_list_, H5P_DEFAULT), doing);
  if (bytes.empty()) return;
  const haddr_t offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF) throw_hdf5_error(doing);
  target_.refer(offset, bytes);
}

void Hdf5Image::write_text(hid_t object, const std::string& name, const std::string& text) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR), "write " + name);
  write_attribute(object, name, space, text.data(), text.size());
}

void Hdf5Image::write_names(hid_t object, const std::string& name, const std::vector<std::string>& names) {
  size_t width = 1;
  for (const std::string& item : names) width = std::max(width, item.size());
  if (width > kAttributeBytes)
    throw Error(fmt::format("a name in {} is longer than the limit of {} bytes", name, kAttributeBytes));
  const size_t fitting = kAttributeBytes / width;
  const size_t parts = std::max<size_t>(1, (names.size() + fitting - 1) / fitting);
  auto first = names.begin();
  for (size_t part = 0; part < parts; ++part) {
    // As in numpy.array_split, the first parts have one more name if the names cannot be divided evenly.
    const size_t count = names.size() / parts + (part < names.size() % parts ? 1 : 0);
    std::string block(count * width, '\0');
    for (size_t i = 0; i < count; ++i, ++first) first->copy(block.data() + i * width, width);
    const hsize_t extent = count;
    const Hdf5Handle space(H5Screate_simple(1, &extent, nullptr), "write " + name);
    write_attribute(object, parts == 1 ? name : name + std::to_string(part), space, block.data(), width);
  }
}

void Hdf5Image::write_attribute(hid_t object, const std::string& name, hid_t space, const char* data,
                                size_t width) {
  const std::string doing = "write the attribute " + name;
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), doing);
  checked(H5Tset_size(type, std::max<size_t>(width, 1)), doing);
  checked(H5Tset_strpad(type, H5T_STR_NULLPAD), doing);
  checked(H5Tset_cset(type, H5T_CSET_UTF8), doing);
  const Hdf5Handle attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), doing);
  checked(H5Awrite(attribute, type, data), doing);
}

}  // namespace dtrain
